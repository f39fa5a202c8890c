"""The paper: inference by mirror descent, responses, gradients through the layers, start and prior."""
