package agentproto

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of questions.
const (
	// MaxAskID is the size limit of a question's id in bytes. An event with a longer one is logged.
	MaxAskID = 128
	// MaxQuestion is the size limit of a question in bytes, MaxDetail that of the text below it. The excess is
	// cut off, and a permission request refused: nothing can be allowed that was not shown.
	MaxQuestion = 1000
	MaxDetail   = 8000
	// maxUnseen is the size limit of the detail of a permission request before its blanks are counted, in bytes.
	maxUnseen = maxAskText / 2
	// MinOptions and MaxOptions are how many options a question has.
	MinOptions = 2
	MaxOptions = 10
	// MaxOption is the size limit of an option in characters, which fits the buttons of every platform.
	MaxOption = 60
	// MaxPayloadHash is the size limit of a hash in bytes.
	MaxPayloadHash = 128
	// MaxOpenAsks is how many questions of a turn may be open at once, MaxAsks how many it may have in all. Further
	// ones are refused, so that an agent cannot fill a chat with questions.
	MaxOpenAsks = 5
	MaxAsks     = 50
)

// Ask is a question to users. The agent gets an [Answer] with the same id, in any case: also when no user answers in
// time.
type Ask struct {
	// ID is the agent's name of the question, unique in its turn. An agent that asks again after a crash, with the same
	// id, texts and hash, gets the answer that is stored, or waits for the open question.
	ID       string   `json:"askId"`
	Question string   `json:"question"`         // one line or a few, shown as plain text
	Detail   string   `json:"detail,omitempty"` // shown as it is below the question, such as the exact input of a tool
	Options  []string `json:"options"`
	// PayloadHash makes the question a permission request: it is the hash of exactly the action that runs if it is
	// allowed. Other users may answer it than other questions.
	PayloadHash string `json:"payload_hash,omitempty"`
	// Tool is the name of the tool that a permission request is about, "" if there is none. A group may let a user
	// allow only some tools.
	Tool string `json:"tool,omitempty"`
	// Allow is the option that allows a permission request. If users have chosen it before for the same request, gated
	// adds the option to always allow it, and gives this one as the answer.
	Allow string `json:"allow,omitempty"`
}

// AnswerReason is why an [Answer] is as it is.
type AnswerReason string

// Values of [Answer.Reason].
const (
	AskAnswered AnswerReason = "answered"
	AskExpired  AnswerReason = "expired" // no user has answered in time, or the turn was cancelled: the same as no
	AskRefused  AnswerReason = "refused" // the question cannot be asked, or not be delivered: the same as no
)

// Answer is the answer to a question.
type Answer struct {
	TurnID string `json:"turnId,omitempty"`
	AskID  string `json:"askId"`
	// Option is the chosen one of the options, letter by letter; "" if none was chosen: take it for no.
	Option string       `json:"option"`
	Reason AnswerReason `json:"reason"`
	// By is the sender who answered, such as telegram:42; "" unless Reason is answered.
	By string `json:"by,omitempty"`
	// PayloadHash is that of the question. An agent must check that it is the hash of the action it is about to run.
	PayloadHash string `json:"payload_hash,omitempty"`
	// Problem says in words why a question was refused.
	Problem string `json:"problem,omitempty"`
}

func (Answer) inputType() string { return "answer" }

// normalize accepts a question that can be answered, if only with a refusal: the agent waits for an answer.
func (a *Ask) normalize() error {
	if a.ID = clean(a.ID); a.ID == "" || len(a.ID) > MaxAskID {
		return fmt.Errorf("askId must have 1 to %d bytes", MaxAskID)
	}
	a.Question, a.Detail, a.PayloadHash = strings.TrimSpace(clean(a.Question)), clean(a.Detail), clean(a.PayloadHash)
	oneLine := func(text string) string { return strings.Join(strings.Fields(clean(text)), " ") }
	for i := range a.Options {
		a.Options[i] = oneLine(a.Options[i])
	}
	a.Tool, a.Allow = clean(a.Tool), oneLine(a.Allow)
	return nil
}

// ErrTooLong means that the action is too long to be shown whole to the users who would allow it.
var ErrTooLong = errors.New("it is too long to be shown, and nothing may be allowed that is not")

// Check returns why a question cannot be asked, nil if it can.
func (a *Ask) Check() error {
	switch {
	case a.Question == "":
		return errors.New("the question is empty")
	case len(a.Options) < MinOptions || len(a.Options) > MaxOptions:
		return fmt.Errorf("a question has %d to %d options, not %d", MinOptions, MaxOptions, len(a.Options))
	case len(a.PayloadHash) > MaxPayloadHash:
		return fmt.Errorf("the payload hash has more than %d bytes", MaxPayloadHash)
	case a.PayloadHash != "" && (len(a.Question) > MaxQuestion || len(a.Detail) > maxUnseen):
		return ErrTooLong
	case a.Allow != "" && a.PayloadHash == "":
		return errors.New("only a permission request has an option that allows it")
	case a.Allow != "" && !slices.Contains(a.Options, a.Allow):
		return errors.New("the option that allows it is none of the options")
	}
	for i, option := range a.Options {
		switch {
		case option == "":
			return fmt.Errorf("option %d is empty", i+1)
		case utf8.RuneCountInString(option) > MaxOption:
			return fmt.Errorf("option %d has more than %d characters", i+1, MaxOption)
		case slices.Contains(a.Options[:i], option):
			return fmt.Errorf("option %d is the same as another one", i+1)
		}
	}
	return nil
}

// Ask asks users of the turn's chat, and waits for the answer. It returns the cause of the context's end if that comes
// first, and [ErrInterrupted] if the turn was interrupted. At the end of the input, when no answer can come any more,
// the question counts as refused.
func (t *Turn) Ask(ctx context.Context, a Ask) (Answer, error) {
	answers, err := t.server.ask(askKey{t.ID, a.ID})
	if err != nil {
		return Answer{}, err
	}
	defer t.server.forget(askKey{t.ID, a.ID})
	if err := t.Emit(Event{Ask: &a}); err != nil {
		return Answer{}, err
	}
	select {
	case answer, more := <-answers:
		if !more {
			return Answer{TurnID: t.ID, AskID: a.ID, Reason: AskRefused, PayloadHash: a.PayloadHash,
				Problem: "the input has ended"}, nil
		}
		return answer, nil
	case <-ctx.Done():
		return Answer{}, context.Cause(ctx)
	}
}

// askKey names a question of a run.
type askKey struct{ turnID, askID string }

// ask registers a question, so that its answer is received. The channel is closed at the end of the input.
func (s *server) ask(key askKey) (<-chan Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked[key] != nil {
		return nil, fmt.Errorf("agentproto: question %q is asked already", key.askID)
	}
	answers := make(chan Answer, 1)
	s.asked[key] = answers
	if s.inputEnded {
		close(answers)
	}
	return answers, nil
}

func (s *server) forget(key askKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asked, key)
}

// answered hands an answer to the question that waits for it. One that no question waits for is logged. The caller
// holds the lock.
func (s *server) answered(a Answer) {
	select {
	case s.asked[askKey{a.TurnID, a.AskID}] <- a:
	default: // nil, or answered twice
		s.log(fmt.Errorf("an answer to question %q, which does not wait for one", Truncate(a.AskID, MaxAskID)))
	}
}
