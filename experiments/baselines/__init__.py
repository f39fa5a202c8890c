"""What mirrorlda is compared with: estimators that choose their own hyper-parameters on what they are fitted to."""
