package main

import (
	"encoding/json"

	"arizuko/deploy/agents/internal/failure"
	"arizuko/pkg/agentproto"
)

// notACP is the failure of a program that does not speak the protocol, by its behavior.
func (r *run) notACP(did string) error {
	return new(failure.Permanent("%s %s: that is no agent of the Agent Client Protocol. "+
		"Some programs need an argument to be one, such as acp or --acp; a command that takes a prompt and prints an "+
		"answer runs by oneshot instead of acp", r.cfg.name(), did))
}

// startExit is the failure of an agent that has exited before it had the prompt. If it was resuming a session, that
// made it exit, unless it was killed.
func (r *run) startExit(a *process, method string) error {
	how := a.program.Ending()
	loading := method == methodResume || method == methodLoad
	if loading && !failure.Signalled(a.program.Exit()) && !failure.IsLackOfSystem(how) {
		return new(failure.SessionLost(r.cfg.name() + " exited: " + how))
	}
	if method == methodInitialize && a.program.Exit() == nil {
		return r.notACP("exited with status 0 and did not answer initialize")
	}
	f := failure.Classify(r.cfg.name() + " exited before the turn: " + failure.Excerpt(how))
	if failure.IsNotFound(a.program.Exit()) {
		f.Kind = agentproto.KindPermanent
	}
	return &f
}

// errorKinds are names that agents give to failures of the model's API, in the data of an error.
var errorKinds = map[string]agentproto.Kind{
	"authentication_failed": agentproto.KindPermanent, "billing_error": agentproto.KindPermanent,
	"invalid_request": agentproto.KindPermanent, "model_not_found": agentproto.KindPermanent,
	"oauth_org_not_allowed": agentproto.KindPermanent, "max_output_tokens": agentproto.KindPermanent,
	"rate_limit": agentproto.KindTransient, "overloaded": agentproto.KindTransient,
	"server_error": agentproto.KindTransient,
}

// errorFailure is the failure of a request that the agent answered with an error. The session is kept: such errors are
// mostly those of the model's API.
func (r *run) errorFailure(e *rpcError) error {
	f := failure.Classify(r.cfg.name() + ": " + failure.Excerpt(e.text()))
	var data struct {
		Kind string `json:"errorKind"`
	}
	_ = json.Unmarshal(e.Data, &data) // of another form in some agents
	if kind, known := errorKinds[data.Kind]; known && f.RetryAfter == 0 {
		f.Kind = kind
	}
	return &f
}

// stopFailure is why a turn has stopped before its end, nil if it has not. The chat gets all that the model had written
// until then, and the reason is kept for operators.
func (r *run) stopFailure(reason string) error {
	switch reason {
	case stopTokens:
		return new(failure.Permanent("%s stopped at the limit of tokens of an answer", r.cfg.name()))
	case stopRequests:
		return new(failure.Permanent("%s stopped at its limit of requests to the model in a turn", r.cfg.name()))
	case stopRefusal:
		return new(failure.Permanent("the model refused to go on with this conversation"))
	case stopCancelled:
		return new(failure.Transient("%s cancelled the turn by itself", r.cfg.name()))
	}
	return nil
}

// notes stand in the chat below an answer that was stopped, by the reason.
var notes = map[string]string{
	stopTokens:   "(The answer ends here: it has reached the model's limit of length.)",
	stopRequests: "(I have stopped here: this took more steps than I may take in one turn.)",
	stopRefusal:  "(The model refused to go on.)",
}
