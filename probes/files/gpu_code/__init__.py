"""The GPU code in a file: cubins and PTX, alone, in fatbins and in archives."""
