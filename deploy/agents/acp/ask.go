package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"arizuko/deploy/agents/internal/permission"
	"arizuko/pkg/agentproto"
)

// decision is the users' answer to a request of the agent.
type decision struct {
	response any
	log      string
	denied   bool
}

// permissionRequest has the parameters of session/request_permission that are used.
type permissionRequest struct {
	SessionID string `json:"sessionId"`
	Call      struct {
		ID        string          `json:"toolCallId"`
		Title     string          `json:"title"`
		Kind      string          `json:"kind"`
		RawInput  json.RawMessage `json:"rawInput"`
		Content   json.RawMessage `json:"content"`
		Locations json.RawMessage `json:"locations"`
	} `json:"toolCall"`
	Options []permissionOption `json:"options"`
}

type permissionOption struct {
	ID   string `json:"optionId"`
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// option is the agent's option of a kind, the zero value if it has none. An id that two options have says neither.
func (p *permissionRequest) option(kinds ...string) (none permissionOption) {
	uses := map[string]int{}
	for _, o := range p.Options {
		uses[o.ID]++
	}
	for _, kind := range kinds {
		for _, o := range p.Options {
			if o.Kind == kind && uses[o.ID] == 1 {
				return o
			}
		}
	}
	return none
}

// outcome is the response to a permission request; option "" cancels it.
func outcome(option string) map[string]any {
	if option == "" {
		return map[string]any{"outcome": map[string]string{"outcome": "cancelled"}}
	}
	return map[string]any{"outcome": map[string]string{"outcome": "selected", "optionId": option}}
}

// askPermission asks users whether a tool may run with the input that the agent shows, this once. Options that allow
// more than that are not offered.
func (r *run) askPermission(m message) error {
	var p permissionRequest
	w := r.running
	if err := json.Unmarshal(m.Params, &p); err != nil || !r.mayAsk(p.SessionID) {
		r.log("%s: cancelled: it is of no running turn, or cannot be read (%v)", methodPermission, err)
		return r.agent.respond(m, outcome(""))
	}
	known := w.shown.calls[shortID(p.Call.ID)]
	title := cmp.Or(p.Call.Title, known.Title, p.Call.Kind, known.Kind, "a tool")
	deny := outcome(p.option("reject_once", "reject_always").ID)
	allow := p.option("allow_once")
	why := ""
	switch {
	case r.cfg.Permissions == permission.SettingDeny:
		why = "ACP_PERMISSIONS is " + permission.SettingDeny
	case allow.ID == "":
		why = "the agent has no option that allows it once"
	case known.unkept && !has(p.Call.RawInput):
		why = "its input is too large to be shown"
	case len(w.open) >= maxOpen:
		why = "too many requests wait for users"
	}
	request, err := permission.New(fmt.Sprintf("May I use %s in this way?", permission.Quoted(title)),
		p.fields(title, allow, known)...)
	if err != nil {
		why = err.Error()
	}
	if why != "" {
		r.log("%s %s: denied: %s", methodPermission, agentproto.Truncate(title, maxNoise), why)
		w.denied = true
		return r.agent.respond(m, deny)
	}
	question := request.Ask(w.Count(request.Hash), r.cfg.redact)
	r.log("%s %s: asking", methodPermission, agentproto.Truncate(title, maxNoise))
	r.ask(m, func(ask func(agentproto.Ask) agentproto.Answer) decision {
		a := ask(question)
		if request.Allowed(a) {
			return decision{response: outcome(allow.ID),
				log: fmt.Sprintf("%s %s: allowed by %s", methodPermission, title, a.By)}
		}
		log := fmt.Sprintf("%s %s: denied (%s %s)", methodPermission, title, a.Reason, cmp.Or(a.By, a.Problem))
		return decision{response: deny, log: log, denied: true}
	})
	return nil
}

// maxOpen bounds how many requests wait for users at once. Gated asks fewer of a turn.
const maxOpen = 64

// mayAsk reports whether users may be asked for a session: only while its turn runs.
func (r *run) mayAsk(session string) bool {
	w := r.running
	return w != nil && w.prompted && !w.dropped && w.response == nil && session == r.session
}

// fields are everything that the agent says about the call. Users see them. Nothing vouches for a title or a kind, not
// even for those that the agent gave earlier, so they are quoted as its words.
func (p *permissionRequest) fields(title string, allow permissionOption, known tool) (all []permission.Field) {
	words := func(name string, said ...string) {
		for _, text := range slices.Compact(said) {
			if text != "" {
				all = append(all, permission.Field{Name: name + ", as the agent calls it", Words: text})
			}
		}
	}
	words("tool", title, known.Title)
	words("kind", p.Call.Kind, known.Kind)
	words("option", allow.Name)
	input := p.Call.RawInput
	if !has(input) {
		input = known.input
	}
	for _, f := range []permission.Field{{Name: "input", Value: input}, {Name: "content", Value: p.Call.Content},
		{Name: "locations", Value: p.Call.Locations}} {
		if has(f.Value) {
			all = append(all, f)
		}
	}
	return all
}

// ask asks users about a request of the agent, without waiting for the answer.
func (r *run) ask(m message, dialog func(ask func(agentproto.Ask) agentproto.Answer) decision) {
	a := r.agent
	r.running.open[string(m.ID)] = m
	r.running.Ask(func(ask func(agentproto.Ask) agentproto.Answer) func() error {
		d := dialog(ask)
		return func() error { return r.decide(a, m, d) }
	})
}

// decide gives the agent the users' answer, unless it has ended or has withdrawn its request.
func (r *run) decide(a *process, m message, d decision) error {
	request, waits := r.running.open[string(m.ID)]
	if !waits || a != r.agent || !request.equals(m) { // an id may come again
		return nil
	}
	delete(r.running.open, string(m.ID))
	r.log("%s", d.log)
	r.running.denied = r.running.denied || d.denied
	return r.agent.respond(m, d.response)
}

// cancelQuestions answers the agent's open requests without users.
func (r *run) cancelQuestions() error {
	for _, m := range r.running.open {
		if err := r.cancelQuestion(m); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) cancelQuestion(m message) error {
	delete(r.running.open, string(m.ID))
	var cancelled any = outcome("")
	if m.Method == methodElicit {
		cancelled = map[string]string{"action": "cancel"}
	}
	return r.agent.respond(m, cancelled)
}

// isRepeated reports whether a request has the id of one that waits for users.
func (r *run) isRepeated(m message) bool {
	if r.running == nil {
		return false
	}
	_, waits := r.running.open[string(m.ID)]
	return waits
}

// repeated handles a request with the id of one that waits for users. The same one is not asked again. The response to
// another one could be taken for that to the first, so that users would allow something they have not seen: both are
// cancelled.
func (r *run) repeated(m message) error {
	first := r.running.open[string(m.ID)]
	if first.equals(m) {
		return nil
	}
	r.log("%s: two requests with id %.40s: cancelled", first.Method, m.ID)
	return r.cancelQuestion(first)
}

// withdraw forgets a request that the agent has cancelled. The question to users stays until they answer it or it
// expires.
func (r *run) withdraw(params json.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if r.running != nil && json.Unmarshal(params, &p) == nil {
		delete(r.running.open, string(p.ID))
	}
}

// elicitation has the parameters of elicitation/create that are used.
type elicitation struct {
	SessionID string `json:"sessionId"`
	Mode      string `json:"mode"`
	Message   string `json:"message"`
	Schema    struct {
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required"`
	} `json:"requestedSchema"`
}

// property is a field of a form. Those with a choice can be asked in a chat.
type property struct {
	Type        string     `json:"type"`
	Title       string     `json:"title"`
	Description string     `json:"description"`
	Enum        []string   `json:"enum"`
	OneOf       []constant `json:"oneOf"`
	Items       struct {
		Enum  []string   `json:"enum"`
		AnyOf []constant `json:"anyOf"`
	} `json:"items"`
}

type constant struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// field is a choice of a form, with the values of its options.
type field struct {
	name    string
	ask     agentproto.Ask
	values  []any
	options []string
}

// maxFields bounds the questions of a form.
const maxFields = 10

// elicit asks users the agent's questions, one field after another. A form that needs a free text cannot be asked in
// this way and is declined.
func (r *run) elicit(m message) error {
	var e elicitation
	w := r.running
	if err := json.Unmarshal(m.Params, &e); err != nil || !r.mayAsk(e.SessionID) || len(w.open) >= maxOpen {
		r.log("%s: cancelled: it is of no running turn, one of too many, or cannot be read (%v)", methodElicit, err)
		return r.agent.respond(m, map[string]string{"action": "cancel"})
	}
	fields, ok := e.fields()
	if !ok {
		r.log("%s: declined: it cannot be asked by buttons", methodElicit)
		return r.agent.respond(m, map[string]string{"action": "decline"})
	}
	for i := range fields {
		key := fields[i].ask.Question + "\n" + strings.Join(fields[i].options, "\n")
		fields[i].ask.ID = fmt.Sprintf("ask-%s-%d", shortHash(key), w.Count(key))
		fields[i].ask.Question = r.cfg.redact(fields[i].ask.Question)
	}
	r.log("%s: asking", methodElicit)
	r.ask(m, func(ask func(agentproto.Ask) agentproto.Answer) decision {
		content := map[string]any{}
		for _, f := range fields {
			a := ask(f.ask)
			i := slices.Index(f.options, a.Option)
			if i < 0 || a.Reason != agentproto.AskAnswered {
				return decision{response: map[string]string{"action": "decline"},
					log: fmt.Sprintf("%s: declined (%s %s)", methodElicit, a.Reason, a.Problem)}
			}
			content[f.name] = f.values[i]
		}
		return decision{response: map[string]any{"action": "accept", "content": content},
			log: methodElicit + ": answered"}
	})
	return nil
}

// fields are the choices of a form. ok is false if it cannot be asked by them.
func (e *elicitation) fields() (fields []field, ok bool) {
	var names []string
	for name := range e.Schema.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p := e.Schema.Properties[name]
		f, ok := p.field()
		if !ok {
			if slices.Contains(e.Schema.Required, name) {
				return nil, false
			}
			continue
		}
		f.name = name
		f.ask.Question = strings.TrimSpace(e.Message)
		if more := cmp.Or(p.Description, p.Title); more != "" && !strings.Contains(e.Message, more) {
			f.ask.Question = strings.TrimSpace(f.ask.Question + "\n" + more)
		}
		f.ask.Options = f.options
		if f.ask.Check() != nil || len(f.ask.Question) > agentproto.MaxQuestion { // it is not to be cut
			return nil, false
		}
		fields = append(fields, f)
	}
	return fields, len(fields) > 0 && len(fields) <= maxFields && (e.Mode == "" || e.Mode == "form")
}

// field makes a choice of a property. ok is false if it is none.
func (p *property) field() (f field, ok bool) {
	add := func(title string, value any) {
		title = strings.Join(strings.Fields(title), " ")
		if utf8.RuneCountInString(title) > agentproto.MaxOption {
			title = string([]rune(title)[:agentproto.MaxOption-1]) + "…"
		}
		f.options, f.values = append(f.options, title), append(f.values, value)
	}
	wrap := func(value string) any {
		if p.Type == "array" {
			return []string{value}
		}
		return value
	}
	if p.Type == "boolean" {
		add("Yes", true)
		add("No", false)
	}
	for _, c := range append(p.OneOf, p.Items.AnyOf...) {
		add(cmp.Or(c.Title, c.Const), wrap(c.Const))
	}
	for _, value := range append(p.Enum, p.Items.Enum...) {
		add(value, wrap(value))
	}
	return f, len(f.options) >= agentproto.MinOptions && len(f.options) <= agentproto.MaxOptions
}

// shortHash is enough of a hash to tell questions apart.
func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
