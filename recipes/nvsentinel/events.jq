# The nodes with a verdict as a HealthEvents message of NVSentinel, in the JSON of protobuf:
#   envcheck fleet --reports reports --format jsonl | jq -s -f events.jq
# A node that passes clears what it was told of before. STORE_ONLY: NVSentinel keeps and exports the events, and changes
# nothing in the cluster; write EXECUTE_REMEDIATION once you trust them.
.[0].created as $created
| (reduce (.[] | select(.record == "problem")) as $it ({}; reduce $it.nodes[] as $node (.; .[$node] += [$it.rule])))
  as $rules
| {
    version: 1,
    events: [
      .[]
      | select(.record == "node" and .problem == "" and .verdict != "unknown")
      | {
          version: 1, agent: "envcheck", componentClass: "GPU", checkName: "EnvcheckVerdict",
          isHealthy: (.verdict == "pass"), isFatal: (.verdict == "fail"), message: .headline,
          errorCode: ($rules[.name] // []), nodeName: .name, generatedTimestamp: $created,
          recommendedAction: (if .verdict == "fail" then "CONTACT_SUPPORT" else "NONE" end),
          processingStrategy: "STORE_ONLY"
        }
    ]
  }
