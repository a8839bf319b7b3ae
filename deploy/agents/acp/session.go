package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"arizuko/deploy/agents/internal/failure"
)

// Times of waiting until an agent has said all that it has to say of the past.
const (
	quietDelay = 300 * time.Millisecond
	maxQuiet   = 5 * time.Second
)

// mcpServer is the agent's name for arizuko's tools.
const mcpServer = "arizuko"

// open starts the agent, unless it runs, and opens the session.
func (r *run) open(ctx context.Context) error {
	if r.agent == nil {
		a, err := start(r.ctx, &r.cfg, r.running.Start.MCP, r.stderr)
		if err != nil {
			return new(failure.OfStart(err, fmt.Sprintf("%s cannot be started: %v", r.cfg.name(), err)))
		}
		r.agent, r.ready, r.late, r.cost = a, false, false, sessionCost{}
	}
	if !r.ready {
		if err := r.initialize(ctx); err != nil {
			return err
		}
		if err := r.openSession(ctx); err != nil {
			return err
		}
		r.ready = true
	}
	return r.quiet(ctx)
}

func (r *run) initialize(ctx context.Context) error {
	m, err := r.request(ctx, methodInitialize, map[string]any{
		"protocolVersion": protocolVersion,
		"clientCapabilities": map[string]any{
			"fs":          map[string]bool{"readTextFile": false, "writeTextFile": false},
			"terminal":    false,
			"elicitation": map[string]any{"form": map[string]any{}},
		},
		"clientInfo": map[string]string{"name": "arizuko", "title": "arizuko", "version": "1"},
	})
	if err != nil {
		return err
	}
	r.can = initialized{}
	_ = json.Unmarshal(m.Result, &r.can)
	switch {
	case m.Error != nil && m.Error.Code == codeMethodNotFound:
		return r.notACP("does not know the method initialize")
	case m.Error != nil:
		return r.errorFailure(m.Error)
	case r.can.ProtocolVersion == 0:
		return r.notACP("names no version of the protocol in its answer to initialize")
	case r.can.ProtocolVersion != protocolVersion:
		return new(failure.Permanent("%s speaks version %v of the Agent Client Protocol, and this program version %d: "+
			"install a version of it that speaks both",
			r.cfg.name(), r.can.ProtocolVersion, protocolVersion))
	}
	r.log("%s %s", cmp.Or(r.can.Info.Name, r.cfg.name()), r.can.Info.Version)
	if r.can.Meta.Steering.Supported {
		return r.running.AnnounceFold()
	}
	return nil
}

// openSession resumes the session, or opens a new one. Some agents announce methods that they do not have: Qwen Code
// 0.1 does so with session/resume.
func (r *run) openSession(ctx context.Context) error {
	methods := []string{methodNew}
	if r.session != "" {
		methods = nil
		if has(r.can.Agent.Session.Resume) {
			methods = append(methods, methodResume)
		}
		if r.can.Agent.LoadSession {
			methods = append(methods, methodLoad)
		}
	}
	for i, method := range methods {
		m, err := r.request(ctx, method, r.sessionParams(method))
		if err == nil && m.Error != nil && r.needsAuthentication(m.Error) {
			if err := r.authenticate(ctx, m.Error); err != nil {
				return err
			}
			m, err = r.request(ctx, method, r.sessionParams(method))
		}
		if i+1 < len(methods) && err == nil && m.Error != nil && m.Error.Code == codeMethodNotFound {
			r.log("%s is announced, but unknown", method)
			continue
		}
		return r.opened(ctx, method, m, err)
	}
	return new(failure.SessionLost(r.cfg.name() + " cannot resume sessions"))
}

// opened takes the answer to a method that opens a session.
func (r *run) opened(ctx context.Context, method string, m message, err error) error {
	switch {
	case err != nil:
		return err
	case m.Error != nil && r.needsAuthentication(m.Error):
		return r.authFailure(m.Error)
	case m.Error != nil && method != methodNew && !failure.IsLackOfSystem(m.Error.text()):
		return new(failure.SessionLost(m.Error.text()))
	case m.Error != nil:
		return r.errorFailure(m.Error)
	}
	var o opened
	_ = json.Unmarshal(m.Result, &o)
	if method == methodNew {
		if o.SessionID == "" {
			return new(failure.Transient("%s: its answer to %s names no session", r.cfg.name(), method))
		}
		r.session, r.fresh = o.SessionID, true
	}
	r.kept, r.late = method != methodNew, r.late || method == methodLoad
	r.openCost(method != methodNew)
	r.log("%s %s", method, r.session)
	return r.configure(ctx, o)
}

func (r *run) sessionParams(method string) map[string]any {
	start := r.running.Start
	servers := []any{}
	switch {
	case start.MCP == nil || r.cfg.name() == codexProgram:
	case r.can.Agent.MCP.HTTP:
		servers = append(servers, map[string]any{
			"type": "http", "name": mcpServer, "url": start.MCP.URL,
			"headers": []any{map[string]string{"name": "Authorization", "value": "Bearer " + start.MCP.Token}},
		})
	default:
		servers = append(servers, relayServer(start.MCP))
	}
	params := map[string]any{"cwd": r.cfg.folder, "mcpServers": servers}
	if method != methodNew {
		params["sessionId"] = r.session
	}
	if has(r.can.Agent.Meta.ClaudeCode) && start.MCP != nil { // an extension: as the agent claude does
		options := map[string]any{"allowedTools": []string{"mcp__" + mcpServer}}
		params["_meta"] = map[string]any{"claudeCode": map[string]any{"options": options}}
	}
	if r.takesSystem() && start.System != "" {
		params["systemPrompt"] = map[string]any{"mode": "append", "content": []contentBlock{textBlock(start.System)}}
	}
	return params
}

// takesSystem reports whether the agent takes the system text for its model's system prompt.
func (r *run) takesSystem() bool { return has(r.can.Agent.Session.SystemPrompt) }

func (r *run) needsAuthentication(e *rpcError) bool { return e.Code == codeAuthRequired }

// authenticate logs the agent in with credentials of the environment.
func (r *run) authenticate(ctx context.Context, e *rpcError) error {
	method := r.cfg.AuthMethod
	if method == "" {
		i := slices.IndexFunc(r.can.Auth, func(m authMethod) bool {
			if len(m.Vars) == 0 {
				return r.cfg.isSet(strings.ToUpper(strings.ReplaceAll(m.ID, "-", "_")))
			}
			return !slices.ContainsFunc(m.Vars, func(v struct {
				Name string `json:"name"`
			}) bool {
				return !r.cfg.isSet(v.Name)
			})
		})
		if i < 0 {
			return r.authFailure(e)
		}
		method = r.can.Auth[i].ID
	}
	m, err := r.request(ctx, methodAuthenticate, map[string]any{"methodId": method})
	switch {
	case err != nil:
		return err
	case m.Error != nil:
		return r.authFailure(m.Error)
	}
	r.log("%s %s", methodAuthenticate, method)
	return nil
}

// authFailure tells operators how to provide the missing credentials.
func (r *run) authFailure(e *rpcError) error {
	var methods []string
	for _, m := range r.can.Auth {
		methods = append(methods, cmp.Or(m.ID, m.Name))
	}
	text := "log in with it as the user that runs the agent, or set its key and name the variable in AGENT_ENV"
	if len(methods) > 0 {
		text += "; it knows these methods for ACP_AUTH_METHOD: " + strings.Join(methods, ", ")
	}
	return new(failure.Permanent("%s has no valid credentials (%s): %s", r.cfg.name(), failure.Excerpt(e.text()), text))
}

// request sends a request of the agent's start, and handles the agent's messages until the response is there. If the
// turn ends before, so does the agent.
func (r *run) request(ctx context.Context, method string, params any) (response message, err error) {
	a, returned := r.agent, false
	if err := a.call(method, params, func(m message) error {
		response, returned = m, true
		return nil
	}); err != nil {
		return response, err
	}
	timeout := time.NewTimer(r.cfg.StartTimeout)
	defer timeout.Stop()
	for !returned {
		select {
		case m, more := <-a.program.Lines:
			if err := r.starting(m, more, method); err != nil {
				return response, err
			}
		case <-timeout.C:
			r.abandon()
			return response, new(failure.Transient("%s has not answered %s within %s: see that its command "+
				"speaks the Agent Client Protocol (some need an argument such as acp or --acp), "+
				"or raise ACP_START_TIMEOUT", r.cfg.name(), method,
				r.cfg.StartTimeout))
		case <-ctx.Done():
			r.abandon()
			return response, context.Cause(ctx)
		}
	}
	return response, nil
}

// starting handles a message of an agent that has no prompt yet, or its end before the answer to a method.
func (r *run) starting(m message, more bool, method string) error {
	if more {
		return r.receive(m)
	}
	a := r.agent
	r.abandon()
	return r.startExit(a, method)
}

// quiet waits until the agent says nothing more of the past: after a load, some send the conversation late.
func (r *run) quiet(ctx context.Context) error {
	if !r.late {
		return nil
	}
	end := time.After(maxQuiet)
	for {
		select {
		case m, more := <-r.agent.program.Lines:
			if err := r.starting(m, more, methodPrompt); err != nil {
				return err
			}
			continue
		case <-time.After(quietDelay):
		case <-end:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		r.late = false
		return nil
	}
}

// configure sets the model and the mode, and says which models there are.
func (r *run) configure(ctx context.Context, o opened) error {
	models := selectionOf(o, "model", methodSetModel, o.Models.Current, o.Models.Available)
	modes := selectionOf(o, "mode", methodSetMode, o.Modes.Current, o.Modes.Available)
	if err := r.choose(ctx, models, cmp.Or(r.running.Start.Model, r.cfg.AgentModel, r.cfg.Model)); err != nil {
		return err
	}
	if err := r.choose(ctx, modes, r.cfg.Mode); err != nil {
		return err
	}
	return r.showModels(models)
}

// choice is a model or a mode.
type choice struct{ ID, Name string }

// selection is a choice that a session offers: of a model or of a mode.
type selection struct {
	what    string
	method  string
	option  string // the id of the option, "" if there is a method for it
	current string
	choices []choice
}

// selectionOf is the choice of a model or a mode: by an option, or else by a method of its own.
func selectionOf(o opened, what, method, current string, available []available) *selection {
	if s := optionOf(o, what); s != nil {
		return s
	}
	s := &selection{what: what, method: method, current: current}
	for _, a := range available {
		s.choices = append(s.choices, choice{ID: cmp.Or(a.ModelID, a.ID), Name: a.Name})
	}
	return s
}

// optionOf is the option of a category, nil if there is none.
func optionOf(o opened, category string) *selection {
	for _, option := range o.Options {
		if option.Category != category && option.ID != category || len(option.Choices) == 0 {
			continue
		}
		s := &selection{what: category, method: methodSetOption, option: option.ID}
		s.current, _ = option.Current.(string)
		for _, top := range option.Choices {
			for _, c := range append(top.Grouped, top) {
				if c.Value != "" {
					s.choices = append(s.choices, choice{ID: c.Value, Name: c.Name})
				}
			}
		}
		return s
	}
	return nil
}

// maxNamed is how many choices an error names.
const maxNamed = 20

// choose sets a model or mode, unless it is set.
func (r *run) choose(ctx context.Context, s *selection, value string) error {
	switch {
	case value == "" || value == s.current:
		return nil
	case !slices.ContainsFunc(s.choices, func(c choice) bool { return c.ID == value }):
		var names []string
		for _, c := range s.choices[:min(len(s.choices), maxNamed)] {
			names = append(names, c.ID)
		}
		return new(failure.Permanent("%s has no %s %q: it has %s", r.cfg.name(), s.what, value,
			cmp.Or(strings.Join(names, ", "), "no choice of them")))
	}
	params := map[string]any{"sessionId": r.session}
	switch s.method {
	case methodSetOption:
		params["configId"], params["value"] = s.option, value
	case methodSetModel:
		params["modelId"] = value
	case methodSetMode:
		params["modeId"] = value
	}
	m, err := r.request(ctx, s.method, params)
	if err == nil && m.Error != nil && m.Error.Code == codeMethodNotFound && s.method == methodSetOption {
		s.method = map[string]string{"model": methodSetModel, "mode": methodSetMode}[s.what]
		return r.choose(ctx, s, value)
	}
	if err == nil && m.Error != nil {
		return new(failure.Permanent("%s refuses the %s %q: %s", r.cfg.name(), s.what, value,
			failure.Excerpt(m.Error.text())))
	}
	s.current = value
	return err
}
