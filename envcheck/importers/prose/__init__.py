"""Facts in sentences: components, versions and GPUs, however people and programs write them."""
