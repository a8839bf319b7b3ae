package store

import (
	"context"
	"encoding/json"
	"fmt"

	"arizuko/pkg/agentproto"
)

// AgentModels are the models that an agent has offered to a group last; none if it has not offered any. agent is its
// name in AGENTS, "" for the default one.
func (r Reader) AgentModels(ctx context.Context, folder, agent string) (m agentproto.Models, err error) {
	var list []byte
	found, err := r.Get(ctx, []any{&list, &m.Current}, queryAgentModels, folder, agent)
	if err != nil || !found {
		return m, err
	}
	if err := json.Unmarshal(list, &m.Models); err != nil {
		return m, fmt.Errorf("models of agent %q of group %s: %w", agent, folder, err)
	}
	return m, nil
}
