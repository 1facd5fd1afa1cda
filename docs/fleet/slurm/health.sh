#!/bin/sh
# HealthCheckProgram= of slurm.conf: drains the node when envcheck finds a fault of the machine, with the rule and the GPU
# as the reason. It never resumes a node, never replaces a reason that is there, and always exits with 0.
PATH=${PATH:-/usr/sbin:/usr/bin:/sbin:/bin}
ENVCHECK=${ENVCHECK:-/opt/envcheck/bin/envcheck}
SECONDS_AT_MOST=${ENVCHECK_SECONDS:-50}
NODE=${SLURMD_NODENAME:-$(hostname -s)}

said=$(timeout -k 2 "$SECONDS_AT_MOST" "$ENVCHECK" check --no-config --scope node --format slurm-reason 2>&1)
status=$?
if [ "$status" = 0 ]; then
    exit 0
fi
case $status:$said in
    "1:envcheck: "*) ;;
    *)
        logger -t envcheck -p daemon.warning -- "not checked (exit status $status): $said" 2>/dev/null
        exit 0
        ;;
esac
case $(scontrol show node "$NODE" --oneliner 2>/dev/null) in
    *State=*DRAIN* | *State=*DOWN* | *State=*FAIL* | *" Reason="*) exit 0 ;;
    *State=*) scontrol update "NodeName=$NODE" State=DRAIN "Reason=$said" ;;
esac
logger -t envcheck -p daemon.err -- "$said" 2>/dev/null
exit 0
