package agentproto

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// EventMark begins the line of an event. A space and the event in JSON follow.
const EventMark = "---ARIZUKO_EVENT---"

// Limits of events.
const (
	// MaxEvent is the size limit of an event's line in bytes. Longer ones are logged.
	MaxEvent = 1 << 20
	// MaxTitle is the size limit of a tool's title and of a step of a plan in bytes. The excess is cut off.
	MaxTitle = 200
	// MaxInput is the size limit of a tool's input in bytes. The excess is cut off.
	MaxInput = 1000
	// MaxToolID is the size limit of a tool's id in bytes. An event with a longer one is logged.
	MaxToolID = 128
	// MaxModels is how many models an agent may offer. Further ones are left out.
	MaxModels = 100
	// MaxModelID is the size limit of a model's id in bytes. An event with a longer one is logged.
	MaxModelID = 128
	// MaxSteps is how many steps a plan has at most. Further ones are left out.
	MaxSteps = 50
)

// maxTokens and maxCost, in US dollars, bound the usage that an agent reports, so that its sums stay finite.
const (
	maxTokens = 1_000_000_000_000
	maxCost   = 1_000_000
)

// Event is an agent's report about its work on a turn: exactly one field beside TurnID is set. Events are shown to
// users while they wait, and answer nothing; a question is asked.
type Event struct {
	TurnID   string // "" means the oldest unanswered turn
	Status   Status
	Text     *string // the answer so far, in markdown; each replaces the one before
	Tool     *Tool
	Plan     *Plan // replaces the one before
	Usage    *Usage
	Ask      *Ask      // a question to users; the answer comes as an [Answer]
	Features *Features // of the agent; it has no TurnID
	Models   *Models   // that the agent offers; it has no TurnID
}

// IsReport reports whether an event only says how far the agent is.
func (e *Event) IsReport() bool { return e.Ask == nil && e.Features == nil && e.Models == nil }

// Features are an agent's abilities beyond the protocol's minimum. It announces them once, before or with its first
// turn.
type Features struct {
	// Fold: the agent can take a turn in while it works on another one. Lines of turns that it may take in
	// so have [Message.Fold]. Of a turn that it has taken in it emits [StatusRunning]; its last frame names
	// all turns that it answers, in [Frame.TurnIDs].
	Fold bool `json:"fold,omitempty"`
}

// Status is the state of an agent.
type Status string

// Values of [Event.Status].
const (
	StatusRunning        Status = "running"
	StatusIdle           Status = "idle"            // it waits for something other than a user
	StatusRequiresAction Status = "requires_action" // it waits for a user
)

// Tool is a call of a tool. A later event with the same id replaces it.
type Tool struct {
	ID    string `json:"id"`
	Title string `json:"title"` // for users, such as "Read notes.md"
	// such as read, edit, execute, search, fetch; for nothing but how it is shown
	Kind   string     `json:"kind,omitempty"`
	Status ToolStatus `json:"status"`
	Input  string     `json:"input,omitempty"` // the tool's input, such as a command: for groups that show it
}

// ToolStatus is how far a call is.
type ToolStatus string

// Values of [Tool.Status].
const (
	ToolPending ToolStatus = "pending"
	ToolRunning ToolStatus = "running"
	ToolDone    ToolStatus = "done"
	ToolFailed  ToolStatus = "failed"
)

// Plan is the list of steps that the agent intends to take.
type Plan struct {
	Entries []Step `json:"entries"`
}

// Step is a part of a plan.
type Step struct {
	Content string     `json:"content"`
	Status  StepStatus `json:"status"`
}

// StepStatus is how far a step is.
type StepStatus string

// Values of [Step.Status].
const (
	StepPending    StepStatus = "pending"
	StepInProgress StepStatus = "in_progress"
	StepCompleted  StepStatus = "completed"
)

// Usage is a turn's consumption so far; 0 means unknown.
type Usage struct {
	Input       int64   `json:"input,omitempty"`        // tokens that the model read
	Output      int64   `json:"output,omitempty"`       // tokens that it wrote
	ContextUsed int64   `json:"context_used,omitempty"` // tokens of the conversation at the moment
	ContextSize int64   `json:"context_size,omitempty"` // tokens that it may have
	CostUSD     float64 `json:"cost_usd,omitempty"`     // US dollars
}

// Types of events, as they stand in their lines.
const (
	eventStatus   = "status"
	eventText     = "text"
	eventTool     = "tool"
	eventPlan     = "plan"
	eventUsage    = "usage"
	eventAsk      = "ask"
	eventFeatures = "features"
	eventModels   = "models"
)

// lineHead begins the object of a line. Inputs have their turn among their own fields.
type lineHead struct {
	Type   string `json:"type"`
	TurnID string `json:"turnId,omitempty"`
}

// WriteEvent writes an event in a single Write. It begins with a new line, in case the output before does not end
// with one. An event over [MaxEvent] is an error.
func WriteEvent(w io.Writer, e Event) error {
	line, err := e.encode()
	if err != nil {
		return err
	}
	if len(line) > MaxEvent-len(EventMark)-1 {
		return fmt.Errorf("agentproto: event of %d bytes is over the limit of %d", len(line), MaxEvent)
	}
	_, err = w.Write([]byte("\n" + EventMark + " " + string(line)))
	return err
}

// maxAskText bounds a question and its detail in an event, in bytes. Gated cuts them further, once secrets are hidden.
const maxAskText = 64 << 10

// bounded is the event without the parts of texts that its reader would cut off. The values it refers to are not
// changed.
func (e Event) bounded() Event {
	short := func(text string) string { return Truncate(text, 3*MaxTitle) }
	switch {
	case e.Text != nil:
		e.Text = new(Cut(*e.Text, MaxResult))
	case e.Tool != nil:
		t := *e.Tool
		t.Title, t.Kind, t.Input = short(t.Title), short(t.Kind), Truncate(t.Input, 4*MaxInput)
		e.Tool = &t
	case e.Plan != nil:
		steps := slices.Clone(e.Plan.Entries[:min(len(e.Plan.Entries), MaxSteps)])
		for i := range steps {
			steps[i].Content, steps[i].Status = short(steps[i].Content), StepStatus(short(string(steps[i].Status)))
		}
		e.Plan = &Plan{Entries: steps}
	case e.Ask != nil:
		a := *e.Ask
		a.Question, a.Detail = Truncate(a.Question, maxAskText), Truncate(a.Detail, maxAskText)
		e.Ask = &a
	case e.Models != nil:
		m := Models{Current: e.Models.Current,
			Models: slices.Clone(e.Models.Models[:min(len(e.Models.Models), MaxModels)])}
		for i := range m.Models {
			m.Models[i].Name, m.Models[i].Description = short(m.Models[i].Name), short(m.Models[i].Description)
		}
		e.Models = &m
	}
	return e
}

func (e Event) encode() ([]byte, error) {
	head, body := lineHead{TurnID: e.TurnID}, any(nil)
	switch {
	case e.Status != "":
		head.Type, body = eventStatus, struct {
			Status Status `json:"status"`
		}{e.Status}
	case e.Text != nil:
		head.Type, body = eventText, struct {
			Text string `json:"text"`
		}{*e.Text}
	case e.Tool != nil:
		head.Type, body = eventTool, e.Tool
	case e.Plan != nil:
		head.Type, body = eventPlan, e.Plan
	case e.Usage != nil:
		head.Type, body = eventUsage, e.Usage
	case e.Ask != nil:
		head.Type, body = eventAsk, e.Ask
	case e.Features != nil:
		head, body = lineHead{Type: eventFeatures}, e.Features
	case e.Models != nil:
		head, body = lineHead{Type: eventModels}, e.Models
	default:
		return nil, errors.New("agentproto: the event says nothing")
	}
	return encodeTyped(head, body)
}

// ErrUnknownEvent is the error of an event of a type that is not known. Later versions may add some: ignore it.
var ErrUnknownEvent = errors.New("unknown type of event")

// ReadEvent parses the line of an event, as [Scanner] does. Its error says what is wrong with the line.
func ReadEvent(line []byte) (Event, error) {
	body, found := bytes.CutPrefix(line, []byte(EventMark+" "))
	switch {
	case !found:
		return Event{}, fmt.Errorf("the line does not begin with %s and a space", EventMark)
	case len(line) > MaxEvent:
		return Event{}, fmt.Errorf("larger than %d bytes", MaxEvent)
	}
	return parseEvent(body)
}

// parseEvent parses the rest of a line after EventMark. Unknown fields are ignored, so that an agent keeps working
// when the protocol gets new ones. The strings of the result are clean, as those of frames.
func parseEvent(body []byte) (e Event, err error) {
	var head struct {
		lineHead
		// The answer so far grows: it is not parsed twice. Other events may have a field of that name with anything in
		// it.
		Text any
		// The fields of an event may also stand in an object that has the name of its type.
		Tool, Plan, Usage, Ask json.RawMessage
	}
	if err := json.Unmarshal(body, &head); err != nil {
		return e, err
	}
	e.TurnID = clean(head.TurnID)
	switch head.Type {
	case eventStatus:
		err = e.parseStatus(body)
	case eventText:
		text, ok := head.Text.(string)
		if !ok {
			return e, errors.New("text is missing, or no string")
		}
		e.Text = new(Cut(clean(text), MaxResult))
	case eventTool:
		e.Tool, err = parsePart(either(head.Tool, body), (*Tool).normalize)
	case eventPlan:
		e.Plan, err = parsePart(either(head.Plan, body), (*Plan).normalize)
	case eventUsage:
		e.Usage, err = parsePart(either(head.Usage, body), (*Usage).normalize)
	case eventAsk:
		e.Ask, err = parsePart(either(head.Ask, body), (*Ask).normalize)
	case eventFeatures:
		e.TurnID, e.Features = "", &Features{}
		err = json.Unmarshal(body, e.Features)
	case eventModels:
		e.TurnID = ""
		e.Models, err = parsePart(body, (*Models).normalize)
	default:
		err = fmt.Errorf("%w %q", ErrUnknownEvent, Truncate(clean(head.Type), 40))
	}
	return e, err
}

func either(object json.RawMessage, body []byte) []byte {
	if len(object) > 0 {
		return object
	}
	return body
}

func (e *Event) parseStatus(body []byte) error {
	var line struct{ Status Status }
	if err := json.Unmarshal(body, &line); err != nil {
		return err
	}
	if e.Status = line.Status; !slices.Contains([]Status{StatusRunning, StatusIdle, StatusRequiresAction}, e.Status) {
		return fmt.Errorf("unknown status %q", Truncate(clean(string(e.Status)), 40))
	}
	return nil
}

// parsePart parses the fields of an event. normalize makes them those that gated uses, or returns why they are invalid.
func parsePart[T any](body []byte, normalize func(*T) error) (part *T, err error) {
	part = new(T)
	if err := json.Unmarshal(body, part); err != nil {
		return nil, err
	}
	return part, normalize(part)
}

func (t *Tool) normalize() error {
	t.ID, t.Title, t.Kind, t.Input = clean(t.ID), title(t.Title), title(t.Kind), oneLine(t.Input, MaxInput)
	switch {
	case t.ID == "" || len(t.ID) > MaxToolID:
		return fmt.Errorf("id of a tool must have 1 to %d bytes", MaxToolID)
	case !slices.Contains([]ToolStatus{ToolPending, ToolRunning, ToolDone, ToolFailed}, t.Status):
		return fmt.Errorf("unknown status %q of a tool", Truncate(clean(string(t.Status)), 40))
	}
	return nil
}

func (p *Plan) normalize() error {
	p.Entries = p.Entries[:min(len(p.Entries), MaxSteps)]
	for i := range p.Entries {
		s := &p.Entries[i]
		s.Content = title(s.Content)
		if !slices.Contains([]StepStatus{StepPending, StepInProgress, StepCompleted}, s.Status) {
			s.Status = StepPending
		}
	}
	return nil
}

func (u *Usage) normalize() error {
	for _, n := range []*int64{&u.Input, &u.Output, &u.ContextUsed, &u.ContextSize} {
		*n = min(max(*n, 0), maxTokens)
	}
	u.CostUSD = min(max(u.CostUSD, 0), maxCost)
	return nil
}

// title is one line, cut at MaxTitle.
func title(text string) string { return oneLine(text, MaxTitle) }

func oneLine(text string, most int) string {
	return Truncate(strings.Join(strings.Fields(clean(text)), " "), most)
}
