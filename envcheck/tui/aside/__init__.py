"""Work done in processes beside the application, so that it holds no key up: examining, judging, asking the matrix."""
