#!/bin/sh
# Prolog= and Epilog= of slurm.conf: tells what the timer (../systemd) found of the node, and looks at nothing itself.
# Slurm drains a node whose Prolog or Epilog fails, so only a finding is passed on: exit status 1 with envcheck's own
# line, since a Python that cannot start a program ends with 1 too. A node without a GPU, whose job was given none, is let
# alone. Wrong usage (2), no verdict or nothing found within ten minutes (3), an internal error (4), a time-out or an
# envcheck that cannot start are logged, and let the job run.
PATH=${PATH:-/usr/sbin:/usr/bin:/sbin:/bin}
ENVCHECK=${ENVCHECK:-/opt/envcheck/bin/envcheck}
SYS=${ENVCHECK_SYS:-/sys}
SECONDS_AT_MOST=${ENVCHECK_SECONDS:-5}

has_gpu() { # by PCI, or by the driver's module, which stays loaded where a GPU is lost
    [ -d "$SYS/module/nvidia" ] && return 0
    for vendor in "$SYS"/bus/pci/devices/*/vendor; do
        [ -r "$vendor" ] && [ "$(cat "$vendor")" = 0x10de ] || continue
        case $(cat "${vendor%vendor}class") in 0x03*) return 0 ;; esac
    done
    return 1
}

[ -n "$SLURM_JOB_GPUS" ] || has_gpu || exit 0
said=$(timeout -k 2 "$SECONDS_AT_MOST" "$ENVCHECK" node --max-age 10m --format slurm-reason 2>&1)
status=$?
[ "$status" = 0 ] && exit 0
finding=$(printf '%s\n' "$said" | grep '^envcheck: ' | tail -n 1)
if [ "$status" = 1 ] && [ -n "$finding" ]; then
    logger -t envcheck -p daemon.err -- "job ${SLURM_JOB_ID:-?}: $finding" 2>/dev/null
    exit 1
fi
case $status in
    124 | 137) said="no answer within $SECONDS_AT_MOST s" ;;
esac
logger -t envcheck -p daemon.warning -- "not checked (exit status $status): $said" 2>/dev/null
exit 0
