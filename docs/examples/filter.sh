#!/bin/sh
# Makes an agent of a command that reads a prompt and prints an answer, as in: filter.sh llm
# It needs jq. The command's stderr goes to the run's log.
while IFS= read -r line; do
  case $(printf '%s\n' "$line" | jq -r .type) in
    start | message) ;;
    *) continue ;; # an interrupt, or a later type: nothing is running here
  esac
  turn=$(printf '%s\n' "$line" | jq -r .turnId)
  status=ok error= kind=
  if ! answer=$(printf '%s\n' "$line" | jq -r .prompt | "$@"); then
    status=error error="$1 failed" kind=transient answer=
  fi
  echo ---ARIZUKO_OUTPUT_START---
  printf '%s' "$answer" | jq -Rs --arg turn "$turn" --arg status "$status" --arg error "$error" --arg kind "$kind" \
    '{status: $status, result: ., error: $error, kind: $kind, turnId: $turn}'
  echo ---ARIZUKO_OUTPUT_END---
done
