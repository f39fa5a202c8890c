"""The commands, a module each; `mirrorlda.cli` imports one when it is called."""
