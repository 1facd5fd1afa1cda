    .section .data
    .byte 1
    .incbin "kernels.fatbin"
    .section .nv_fatbin, "a"
    .balign 8
    .incbin "cuda-11.8.fatbin"
