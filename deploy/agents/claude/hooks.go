package main

import (
	"encoding/json"

	"arizuko/pkg/agentproto"
)

const (
	hookCallback = "hook_callback" // the subtype of a control request that shows a tool call before it is carried out
	skillHook    = "skill"         // our name of the hook
)

// newInitialize makes the CLI show calls of skills. It reads the arguments of one as if a user had typed them, @path
// included, and models pass on words of users.
func newInitialize() controlRequest {
	return controlRequest{"control_request", "initialize", map[string]any{
		"subtype": "initialize",
		"hooks": map[string]any{"PreToolUse": []any{map[string]any{"matcher": "Skill",
			"hookCallbackIds": []string{skillHook}}}},
	}}
}

// inertSkill lets a call of a skill go on with inert arguments.
func inertSkill(l line) controlResponse {
	var shown struct {
		Input map[string]any `json:"tool_input"`
	}
	output := map[string]any{"hookEventName": "PreToolUse"}
	if err := json.Unmarshal(l.Request.Input, &shown); err != nil {
		output["permissionDecision"], output["permissionDecisionReason"] = "deny", "The call cannot be read."
	} else {
		for name, value := range shown.Input {
			if text, is := value.(string); is {
				shown.Input[name] = agentproto.Inert(text)
			}
		}
		output["updatedInput"] = shown.Input
	}
	return supported(l, map[string]any{"hookSpecificOutput": output})
}
