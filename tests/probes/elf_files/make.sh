#!/usr/bin/env bash
# Makes the binary files of this folder again; README.md says with which programs.
set -euo pipefail
cd "$(dirname "$0")"
: "${CUDA:?folder of CUDA 13.0}" "${CUDA_11_8:?folder of CUDA 11.8}" "${ZIG:?command that starts zig}"
: "${PTXAS_12_4:?}" "${PTXAS_12_8:?}" "${PTXAS_12_9:?ptxas of these versions}" "${CUOBJDUMP:?}"
small=(-Wl,-z,noseparate-code -Wl,--build-id=none -s)

# The host side. Sections stand in the first, and are cut off from the second.
gcc -O1 -shared -fPIC "${small[@]}" -Wl,-soname,libdemo.so.1 -Wl,--version-script=versions.map \
    -Wl,--enable-new-dtags '-Wl,-rpath,$ORIGIN/../lib:/opt/demo' -Wl,-z,nodefaultlib library.c -lm -o new.so
gcc -O1 -shared -fPIC "${small[@]}" -Wl,--disable-new-dtags '-Wl,-rpath,/opt/old:$ORIGIN' -Wl,--hash-style=sysv \
    library.c -Wl,--version-script=versions.map -lm -o old.so
python3 - <<'CUT'
import struct
with open("old.so", "r+b") as file:
    data = bytearray(file.read())
    table = struct.unpack_from("<Q", data, 40)[0]
    struct.pack_into("<Q", data, 40, 0)
    struct.pack_into("<HHH", data, 58, 64, 0, 0)
    file.seek(0)
    file.write(data[:table])
    file.truncate()
CUT
echo 'int main(void) { return 0; }' | gcc -O1 -fPIE -pie "${small[@]}" -x c - -o program
gcc -O1 -c library.c -o library.o
for target in aarch64-linux-gnu.2.17 x86-linux-gnu.2.17 s390x-linux-gnu.2.17 powerpc-linux-gnueabihf.2.17; do
    $ZIG cc -target "$target" -O1 -shared -fPIC -s -nostdlib -Wl,-z,max-page-size=4096 -Wl,-soname,libplain.so.1 \
        plain.c -o "${target%%-*}.so"
done

# Objects with GPU code.
"$CUDA/bin/nvcc" --compress-mode=size -c kernel.cu -o kernels.o -gencode arch=compute_75,code=sm_75 \
    -gencode arch=compute_80,code=[sm_80,compute_80] -gencode arch=compute_90a,code=[sm_90a,compute_90a] \
    -gencode arch=compute_100f,code=[sm_100f,compute_100f] -gencode arch=compute_120a,code=sm_120a
"$CUDA/bin/nvcc" --compress-mode=size -rdc=true -c kernel.cu -o linkable.o \
    -gencode arch=compute_80,code=[sm_80,compute_80] -gencode arch=compute_90a,code=[sm_90a,lto_90a]
"$CUDA/bin/nvcc" --compress-mode=size -Xcompiler -fPIC -rdc=true -c kernel.cu -o part.o \
    -gencode arch=compute_80,code=[sm_80,compute_80]
"$CUDA/bin/nvcc" --compress-mode=size -Xcompiler -fPIC -dlink part.o -o link.o -gencode arch=compute_80,code=sm_80
gcc -shared -nostdlib "${small[@]}" part.o link.o -o linked.so
strip --strip-unneeded kernels.o linkable.o

# Fatbins, cubins, archives.
"$CUDA/bin/nvcc" --compress-mode=speed -fatbin kernel.cu -o kernels.fatbin \
    -gencode arch=compute_80,code=compute_80 -gencode arch=compute_103f,code=compute_103f
sed 's/sm_90a/sm_75/' kernel.ptx >sm_75.ptx
"$CUDA_11_8/bin/ptxas" -arch=sm_75 sm_75.ptx -o sm_75.cubin
"$CUDA_11_8/bin/fatbinary" -64 --compress-all --create=cuda-11.8.fatbin --image3=kind=elf,sm=75,file=sm_75.cubin \
    --image3=kind=ptx,sm=75,file=sm_75.ptx
for target in 12.4:90a 12.8:100a 12.9:100f; do
    ptxas=PTXAS_${target%%:*}
    ptxas=${ptxas/./_}
    sed "s/sm_90a/sm_${target##*:}/; s/7\.8/8.8/; $([ "${target##*:}" = 90a ] && echo 's/8\.8/8.0/' || true)
         $([ "${target##*:}" = 100a ] && echo 's/8\.8/8.6/' || true)" kernel.ptx >target.ptx
    "${!ptxas}" "-arch=sm_${target##*:}" target.ptx -o "sm_${target##*:}-cuda-${target%%:*}.cubin"
done
for target in 80 90a 100a 100f; do
    "$CUDA/bin/nvcc" -cubin "-arch=sm_$target" kernel.cu -o "sm_$target-cuda-13.0.cubin"
done
"$CUDA/bin/nvcc" -cubin -rdc=true -arch=sm_80 kernel.cu -o linkable-sm_80.cubin
gcc -shared -nostdlib "${small[@]}" embedded.s -o embedded.so
rm -f whole.a thin.a
ar rcD whole.a linkable.o library.o sm_80-cuda-13.0.cubin
ar rcDT thin.a kernels.o linkable.o
rm -f part.o link.o sm_75.ptx sm_75.cubin target.ptx

# What cuobjdump says of them: of fatbins their headers, of cubins the target in the name that it would give them.
mkdir -p cuobjdump
for file in kernels.o linkable.o linked.so kernels.fatbin embedded.so whole.a; do
    "$CUOBJDUMP" -all "$file" | grep -E '^(Fatbin|arch|code version|compressed)' >"cuobjdump/$file.txt"
done
for file in *.cubin; do
    "$CUOBJDUMP" --list-elf "$file" | sed 's/.*\.\(sm_[0-9af]*\)\.cubin$/\1/' >"cuobjdump/$file.txt"
done
