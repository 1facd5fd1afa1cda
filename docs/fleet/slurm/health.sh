#!/bin/sh
# HealthCheckProgram= of slurm.conf: drains the node when the timer (../systemd) found a fault of the machine, with the
# rule and the GPU as the reason. A node without a GPU by Gres, PCI or driver is left alone. It never resumes a node, never
# replaces a reason that is there, and always exits with 0. A fault is exit status 1 with envcheck's own line: a Python
# that cannot start a program ends with 1 too.
PATH=${PATH:-/usr/sbin:/usr/bin:/sbin:/bin}
ENVCHECK=${ENVCHECK:-/opt/envcheck/bin/envcheck}
SECONDS_AT_MOST=${ENVCHECK_SECONDS:-5}
SYS=${ENVCHECK_SYS:-/sys}
NODE=${SLURMD_NODENAME:-$(hostname -s)}

has_gpu() { # by PCI, or by the driver's module, which stays loaded where a GPU is lost
    [ -d "$SYS/module/nvidia" ] && return 0
    for vendor in "$SYS"/bus/pci/devices/*/vendor; do
        [ -r "$vendor" ] && [ "$(cat "$vendor")" = 0x10de ] || continue
        case $(cat "${vendor%vendor}class") in 0x03*) return 0 ;; esac
    done
    return 1
}

said=$(timeout -k 2 "$SECONDS_AT_MOST" "$ENVCHECK" node --max-age 10m --format slurm-reason 2>&1)
status=$?
[ "$status" = 0 ] && exit 0
finding=$(printf '%s\n' "$said" | grep '^envcheck: ' | tail -n 1)
if [ "$status" != 1 ] || [ -z "$finding" ]; then
    logger -t envcheck -p daemon.warning -- "not checked (exit status $status): $said" 2>/dev/null
    exit 0
fi
shown=$(scontrol show node "$NODE" --oneliner 2>/dev/null)
case $shown in
    *" Reason="*) exit 0 ;;
    *" State="*) ;;
    *) exit 0 ;;
esac
state=${shown#* State=}
case ${state%% *} in
    *DRAIN* | *DOWN* | *FAIL*) exit 0 ;;
esac
gres=${shown#* Gres=}
case ${gres%% *} in
    gpu*) ;;
    *) has_gpu || exit 0 ;;
esac
scontrol update "NodeName=$NODE" State=DRAIN "Reason=$finding"
logger -t envcheck -p daemon.err -- "$finding" 2>/dev/null
exit 0
