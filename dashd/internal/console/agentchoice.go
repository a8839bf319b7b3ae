package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"arizuko/dashd/internal/pages"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// agentsTimeout bounds the question which agents there are: without an answer the form takes any name.
const agentsTimeout = time.Second

// agentChoice reads which agent and model a group has, and the other choices.
func (c groupPages) agentChoice(ctx context.Context, g *msg.Group) (choice pages.AgentChoice, err error) {
	own, _ := groupconfig.Parse(g.Config) // an invalid one chooses nothing; the page names its mistakes
	choice = pages.AgentChoice{
		Agent: groupconfig.AgentTitle(own.Agent.Name), Model: cmp.Or(own.Agent.Model, groupconfig.DefaultAgent),
		Own: own.Agent.Command != "" || own.Agent.Image != "",
	}
	offered, err := factrows.AgentModels(ctx, c.Store, g.Folder, own.Agent.Name)
	if err != nil {
		return choice, err
	}
	for _, m := range offered.Models {
		choice.Models = append(choice.Models, m.ID)
	}
	ctx, cancel := context.WithTimeout(ctx, agentsTimeout)
	defer cancel()
	var answer struct{ Agents []string }
	if err := c.ask(ctx, "gated", http.MethodGet, "/v1/agents", nil, &answer); err == nil {
		choice.Agents = answer.Agents
		if !slices.Contains(choice.Agents, choice.Agent) {
			choice.Agents, choice.Missing = append(choice.Agents, choice.Agent), true
		}
	}
	return choice, nil
}

// chooseAgent sets the agent and model of a group: routd does it. A model is kept for its agent alone.
func (c groupPages) chooseAgent(r *http.Request, g *msg.Group) error {
	own, _ := groupconfig.Parse(g.Config)
	chosen := map[string]any{"model": chosenOf(r, "model")}
	if r.PostForm.Has("agent") {
		chosen["name"] = chosenOf(r, "agent")
		name, _ := chosen["name"].(string)
		if name != own.Agent.Name && chosen["model"] == own.Agent.Model {
			chosen["model"] = nil
		}
	}
	patch := map[string]any{"config": map[string]any{"agent": chosen}}
	return c.ask(r.Context(), "routd", http.MethodPatch, routeapi.GroupPath(g.Folder), patch, nil)
}

// chosenOf is a field as a group's config has it: null for the default one.
func chosenOf(r *http.Request, field string) any {
	value := strings.TrimSpace(r.PostForm.Get(field))
	if value == "" || value == groupconfig.DefaultAgent {
		return nil
	}
	return value
}
