"""Models, pipelines and folders of models in files, and back."""
