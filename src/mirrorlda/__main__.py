"""`python -m mirrorlda` is the command `mirrorlda`."""

from mirrorlda.cli import main

if __name__ == "__main__":
    main(prog_name="mirrorlda")
