package services

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// maxModelsShown is how many models an answer lists.
const maxModelsShown = 30

// maxProblemShown bounds the reason why an agent cannot be run, in bytes.
const maxProblemShown = 500

// Answers to /agent and /model.
const (
	choiceFailed = "The database cannot be read right now. Try again later."
	choiceDown   = "Routing (routd), which keeps the settings of groups, is not answering: nothing is changed. " +
		"Try again later, or ask an operator to start it."
	choiceOwn = "This group sets its own agent: its config has agent.command or agent.image. Remove that first, " +
		"on the dashboard or with `routd groups set`."
	noModelsKnown = "No models are known yet: an agent that offers a choice lists them with its first answer."
)

// choice is one /agent, /model or /hooks.
type choice struct {
	*Services

	folder   string
	chat     string // in which it was written
	thread   string
	operator bool   // the sender operates the group
	by       string // the sender
	wanted   string // "" to show

	own groupconfig.Config // of the group
}

// answer reads the group's configuration and answers the command.
func (c *choice) answer(ctx context.Context, command func(context.Context) (string, error)) string {
	text, err := c.read(ctx, command)
	var refused *apierr.Error
	switch {
	case err == nil:
		return text
	case errors.As(err, &refused) && refused.Kind == apierr.Unavailable:
		return choiceDown
	case errors.As(err, &refused) && refused.Kind != apierr.Internal && !httpx.IsForeign(err):
		return "Nothing is changed: " + refused.Message + "."
	}
	c.Log.Error("choosing an agent or model failed", "folder", c.folder, "err", err)
	return choiceFailed
}

func (c *choice) read(ctx context.Context, command func(context.Context) (string, error)) (string, error) {
	group, err := c.Store.Group(ctx, c.folder)
	if err != nil {
		return "", err
	}
	if group == nil {
		return "", apierr.New(apierr.NotFound, "there is no group %s", c.folder)
	}
	if c.own, err = groupconfig.Parse(group.Config); err != nil {
		return "", apierr.New(apierr.BadRequest,
			"the config of the group is invalid: %w; correct it in the dashboard or with `routd groups set`", err)
	}
	if c.wanted != "" && !c.operator {
		return fmt.Sprintf("Only %s can do that.",
			msg.EscapeLine(c.own.Roles.Operate.Words(msg.WhoOperate, c.nameOf(ctx)))), nil
	}
	return command(ctx)
}

// agent shows the agents, or switches the group to one of them.
func (c *choice) agent(ctx context.Context) (string, error) {
	all, now := c.Defaults.Agents, c.own.Agent
	ownAgent := now.Name == "" && (now.Command != "" || now.Image != "")
	if c.wanted == "" {
		return c.showAgents(all, ownAgent), nil
	}
	name := strings.ToLower(c.wanted)
	switch {
	case !slices.Contains(all.Names(), name):
		return fmt.Sprintf("There is no agent %q here. The agents are: %s.", agentproto.Truncate(c.wanted, 40),
			strings.Join(all.Names(), ", ")), nil
	case ownAgent:
		return choiceOwn, nil
	case name == groupconfig.AgentTitle(now.Name):
		return name + " is the agent of this group already.", nil
	}
	if c.CheckAgent != nil {
		if err := c.CheckAgent(ctx, name); err != nil {
			return fmt.Sprintf("Nothing is changed: %s cannot be run here. %s", name,
				agentproto.Truncate(err.Error(), maxProblemShown)), nil
		}
	}
	// A model is one agent's.
	to := map[string]any{"name": name, "model": nil}
	if name == groupconfig.DefaultAgent {
		to["name"] = nil
	}
	if err := c.change(ctx, to); err != nil {
		return "", err
	}
	text := fmt.Sprintf("%s answers from the next message on. It sees the last messages of the conversation, "+
		"not the whole of it; the files of the group stay. What is under way is finished by %s.", name,
		groupconfig.AgentTitle(now.Name))
	if now.Model != "" {
		text += " The model is the agent's own choice again."
	}
	return text, nil
}

func (c *choice) showAgents(all groupconfig.Agents, ownAgent bool) string {
	now := groupconfig.AgentTitle(c.own.Agent.Name)
	var b strings.Builder
	switch {
	case ownAgent:
		b.WriteString("This group sets its own agent.")
	case all.Check(c.own.Agent.Name) != nil:
		fmt.Fprintf(&b, "The agent of this group is %s, which is not configured: it cannot answer until an "+
			"operator chooses another one.", now)
	default:
		fmt.Fprintf(&b, "The agent of this group is %s.", now)
	}
	if len(all) == 0 {
		b.WriteString(" There is no other: AGENTS names none.")
		return b.String()
	}
	fmt.Fprintf(&b, "\nAgents: %s.", strings.Join(all.Names(), ", "))
	if c.operator {
		fmt.Fprintf(&b, "\nSwitch with %s NAME.", msg.CommandIn(c.chat, msg.CommandAgent))
	}
	return b.String()
}

// model shows the models that the group's agent has offered, or chooses one.
func (c *choice) model(ctx context.Context) (string, error) {
	offered, err := factrows.AgentModels(ctx, c.Store, c.folder, c.own.Agent.Name)
	if err != nil {
		return "", err
	}
	now := c.own.Over(c.Defaults).Agent.Model
	if c.wanted == "" {
		return c.showModels(offered, now), nil
	}
	if c.wanted == groupconfig.DefaultAgent {
		if err := c.change(ctx, map[string]any{"model": nil}); err != nil {
			return "", err
		}
		return "From the next message on the agent chooses the model itself.", nil
	}
	if len(offered.Models) == 0 {
		return noModelsKnown + " `routd groups set` sets agent.model to anything.", nil
	}
	model := find(offered.Models, c.wanted)
	if model == nil {
		return fmt.Sprintf("The agent offers no model %q.%s\n%s", agentproto.Truncate(c.wanted, 80),
			manyModels(offered),
			c.showModels(like(offered, c.wanted), now)), nil
	}
	if model.ID == now {
		return msg.EscapeLine(model.ID) + " is the model already.", nil
	}
	if err := c.change(ctx, map[string]any{"model": model.ID}); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s is the model from your next message on. The conversation continues.",
		msg.EscapeLine(model.ID)), nil
}

// find is the model that is meant: by its id to the letter, else by its id or name in any case. It is nil if none is.
func find(models []agentproto.Model, wanted string) *agentproto.Model {
	for _, is := range []func(agentproto.Model) bool{
		func(m agentproto.Model) bool { return m.ID == wanted },
		func(m agentproto.Model) bool { return strings.EqualFold(m.ID, wanted) },
		func(m agentproto.Model) bool { return strings.EqualFold(m.Name, wanted) },
	} {
		if i := slices.IndexFunc(models, is); i >= 0 {
			return &models[i]
		}
	}
	return nil
}

// like are the models that have a text in their ids or names, all if none has.
func like(offered agentproto.Models, text string) agentproto.Models {
	var found []agentproto.Model
	for _, m := range offered.Models {
		if strings.Contains(strings.ToLower(m.ID+"\n"+m.Name), strings.ToLower(text)) {
			found = append(found, m)
		}
	}
	if len(found) > 0 {
		offered.Models = found
	}
	return offered
}

// manyModels says how to choose a model beyond those that are stored, "" if all are.
func manyModels(offered agentproto.Models) string {
	if len(offered.Models) < agentproto.MaxModels {
		return ""
	}
	return fmt.Sprintf(" Only the first %d are known here: `routd groups set` sets agent.model to any other.",
		agentproto.MaxModels)
}

// showModels lists models, whose texts are the agent's. now is the chosen one.
func (c *choice) showModels(offered agentproto.Models, now string) string {
	var b strings.Builder
	switch used := msg.EscapeLine(cmp.Or(now, offered.Current)); {
	case used == "":
		b.WriteString("No model is selected: the agent uses its default.")
	case now == "":
		fmt.Fprintf(&b, "The model is %s, the agent's own choice.", used)
	default:
		fmt.Fprintf(&b, "The model is %s.", used)
	}
	if len(offered.Models) == 0 {
		return b.String() + " " + noModelsKnown
	}
	b.WriteString("\nModels:")
	for _, m := range offered.Models[:min(len(offered.Models), maxModelsShown)] {
		b.WriteString("\n- " + msg.EscapeLine(m.ID))
		if m.Name != "" && m.Name != m.ID {
			b.WriteString(": " + msg.EscapeLine(m.Name))
		}
	}
	if more := len(offered.Models) - maxModelsShown; more > 0 {
		fmt.Fprintf(&b, "\nand %d more, which the dashboard lists", more)
	}
	if c.operator {
		fmt.Fprintf(&b, "\nChoose with %s NAME; %[1]s default leaves it to the agent.",
			msg.CommandIn(c.chat, msg.CommandModel))
	}
	return b.String()
}

// change changes the group's agent: routd does it, and stores who asked. A call that is repeated after a crash changes
// nothing more.
func (c *choice) change(ctx context.Context, agent map[string]any) error {
	body := map[string]any{"config": map[string]any{"agent": agent}}
	return Do(httpx.WithBy(ctx, c.by), c.Routd, http.MethodPatch, routeapi.GroupPath(c.folder), body, nil)
}
