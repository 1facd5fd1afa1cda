"""Collective operations through NCCL, by one process for each GPU or by one for all."""
