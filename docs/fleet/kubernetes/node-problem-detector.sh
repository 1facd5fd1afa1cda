#!/bin/sh
# The plugin of node-problem-detector.json. Exit status 1 is a problem of the node; a Python that cannot start a program ends
# with 1 too, without a word on stdout, and that is unknown (2).
said=$("${ENVCHECK:-/opt/envcheck/bin/envcheck}" check --no-config --scope node --format node-problem-detector)
status=$?
if [ "$status" = 1 ] && [ -z "$said" ]; then
    said="envcheck did not start"
    status=2
fi
printf '%s\n' "$said"
exit "$status"
