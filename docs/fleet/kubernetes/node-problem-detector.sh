#!/bin/sh
# The plugin of node-problem-detector.json. Exit status 1 is a problem of the node; a Python that cannot start a program ends
# with 1 too, without a word on stdout, and that is unknown (2).
SYS=${ENVCHECK_SYS:-/sys}
has_gpu() { # by PCI, or by the driver's module, which stays loaded where a GPU is lost
    [ -d "$SYS/module/nvidia" ] && return 0
    for vendor in "$SYS"/bus/pci/devices/*/vendor; do
        [ -r "$vendor" ] && [ "$(cat "$vendor")" = 0x10de ] || continue
        case $(cat "${vendor%vendor}class") in 0x03*) return 0 ;; esac
    done
    return 1
}

if ! has_gpu; then
    echo "no NVIDIA GPU belongs to this node"
    exit 0
fi
said=$("${ENVCHECK:-/opt/envcheck/bin/envcheck}" check --no-config --scope node --format node-problem-detector)
status=$?
if [ "$status" = 1 ] && [ -z "$said" ]; then
    said="envcheck did not start"
    status=2
fi
printf '%s\n' "$said"
exit "$status"
