package msg

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Poll is the content of a row of KindPoll. A row with a target closes the poll that the target is;
// it has the result.
type Poll struct {
	Question string      `json:"question"`
	Options  []string    `json:"options"`
	Multiple bool        `json:"multiple"`         // a voter may choose several options
	ClosesAt int64       `json:"closes_at"`        // unix ms, 0 for never
	Result   *PollResult `json:"result,omitempty"` // of a closed poll
}

// PollResult are the counts of a poll.
type PollResult struct {
	Counts []int `json:"counts"` // votes for each option, in their order
	Voters int   `json:"voters"`
}

// ParsePoll reads the content of a row of KindPoll.
func ParsePoll(content string) (*Poll, error) { return parse[Poll]("poll", content) }

// parse reads the JSON of a column or of a row's content.
func parse[T any](what, text string) (*T, error) {
	v := new(T)
	if err := json.Unmarshal([]byte(text), v); err != nil {
		return nil, fmt.Errorf("invalid %s: %w", what, err)
	}
	return v, nil
}

// toJSON writes what parse reads: plain strings and numbers, which cannot fail.
func toJSON(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// JSON is the poll as the content of a row.
func (p *Poll) JSON() string { return toJSON(p) }

// Text is the poll as numbered lines in markdown, for platforms without polls. label makes what
// stands before an option of a number, from 1.
func (p *Poll) Text(label func(option int) string) string {
	var b strings.Builder
	b.WriteString(EscapeLine(p.Question))
	for i, option := range p.Options {
		fmt.Fprintf(&b, "\n%s %s", label(i+1), EscapeLine(option))
		if p.Result != nil && i < len(p.Result.Counts) {
			fmt.Fprintf(&b, ": %d", p.Result.Counts[i])
		}
	}
	switch {
	case p.Result != nil:
		users := "users"
		if p.Result.Voters == 1 {
			users = "user"
		}
		fmt.Fprintf(&b, "\n_Closed. Votes of %d %s._", p.Result.Voters, users)
	case p.Multiple:
		b.WriteString("\n_Choose any number of options._")
	}
	return b.String()
}

// EscapeLine is a text on one line, which markdown shows as it is.
func EscapeLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	number := len(text) - len(strings.TrimLeft(text, "0123456789")) // where a list's marker would end
	var b strings.Builder
	for i, c := range text {
		if strings.ContainsRune("\\`*_[]<>&#~|", c) || i == number && strings.ContainsRune("-+.)", c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// Limits of polls.
const (
	MinPollOptions = 2
	MaxPollOptions = 10
)

// PollLimits are a platform's limits for polls. Lengths are in UTF-16 units; each
// character has one or two.
type PollLimits struct {
	Question int
	Option   int
	// MaxOpen is how long a poll may be open, in ms, 0 for any time.
	MaxOpen int64
	// Native means that the platform has polls. On others users vote by numbered reactions.
	Native bool
}

// PollLimitsOf returns the limits of a chat's platform. ok is false between groups, where nothing
// is delivered.
func PollLimitsOf(chatJID string) (limits PollLimits, ok bool) {
	switch FamilyOf(chatJID) {
	case PlatformGroup, PlatformHook:
		return PollLimits{}, false
	case "telegram":
		return PollLimits{Question: 300, Option: 100, Native: true}, true
	case "discord":
		return PollLimits{Question: 300, Option: 55, MaxOpen: 32 * 24 * 3_600_000, Native: true}, true
	}
	return PollLimits{Question: 300, Option: 200}, true
}

// Check returns why a platform does not take the poll at a time, in unix ms; nil if it does.
func (l PollLimits) Check(p *Poll, now int64) error {
	switch {
	case strings.TrimSpace(p.Question) == "":
		return fmt.Errorf("question: is empty")
	case units(p.Question) > l.Question:
		return fmt.Errorf("question: has %d characters, and polls of this platform take %d", units(p.Question),
			l.Question)
	case len(p.Options) < MinPollOptions || len(p.Options) > MaxPollOptions:
		return fmt.Errorf("options: a poll has %d to %d options, not %d", MinPollOptions, MaxPollOptions,
			len(p.Options))
	case p.ClosesAt != 0 && p.ClosesAt <= now:
		return fmt.Errorf("closes_at: is in the past")
	case p.ClosesAt != 0 && l.MaxOpen != 0 && p.ClosesAt > now+l.MaxOpen:
		return fmt.Errorf("closes_at: polls of this platform are open for %d days at most", l.MaxOpen/(24*3_600_000))
	}
	for i, option := range p.Options {
		switch {
		case strings.TrimSpace(option) == "":
			return fmt.Errorf("options: option %d is empty", i+1)
		case units(option) > l.Option:
			return fmt.Errorf("options: option %d has %d characters, and polls of this platform take %d", i+1,
				units(option), l.Option)
		case slices.Contains(p.Options[:i], option):
			return fmt.Errorf("options: option %d is the same as another one", i+1)
		}
	}
	return nil
}

func units(text string) int { return len(utf16.Encode([]rune(text))) }

// Vote is the content of a row of VerbVote.
type Vote struct {
	// Options are numbers of options, from 1: all that the voter chooses now, none for a vote that is
	// withdrawn. With a Change they are only the options that change.
	Options []int      `json:"options"`
	Change  VoteChange `json:"change,omitempty"`
	// Row is the poll's outbound row; 0: it is the row's target.
	Row int64 `json:"row,omitempty"`
}

// VoteChange says how a vote changes the one before.
type VoteChange string

// The changes of a vote; the zero value replaces it.
const (
	VoteAdds    VoteChange = "add"
	VoteRemoves VoteChange = "remove"
)

// JSON is the vote as the content of a row.
func (v *Vote) JSON() string {
	c := *v
	c.Options = append([]int{}, v.Options...) // none is [], not null
	return toJSON(c)
}

// ParseVote reads the content of a row of VerbVote.
func ParseVote(content string) (*Vote, error) {
	v, err := parse[Vote]("vote", content)
	if err == nil && v.Change != "" && v.Change != VoteAdds && v.Change != VoteRemoves {
		return nil, fmt.Errorf("invalid vote: unknown change %.20q", v.Change)
	}
	return v, err
}

// Fits reports whether a poll with that many options has all that are voted for.
func (v *Vote) Fits(options int) bool {
	return len(v.Options) <= options && !slices.ContainsFunc(v.Options,
		func(n int) bool { return n < 1 || n > options })
}

// Apply returns a voter's choice after the vote, given the choice before it: each option once,
// in the order in which they were chosen.
func (v *Vote) Apply(before []int) (chosen []int) {
	if v.Change != "" {
		chosen = slices.DeleteFunc(slices.Clone(before), func(n int) bool { return slices.Contains(v.Options, n) })
	}
	if v.Change == VoteRemoves {
		return chosen
	}
	for _, n := range v.Options {
		if !slices.Contains(chosen, n) {
			chosen = append(chosen, n)
		}
	}
	return chosen
}

// PollEnd is the content of a row of VerbPollEnd.
type PollEnd struct {
	Result *PollResult `json:"result,omitempty"` // as the platform counts, nil if it does not say
	Row    int64       `json:"row,omitempty"`    // as in Vote
}

// JSON is the end of a poll as the content of a row.
func (e *PollEnd) JSON() string { return toJSON(e) }

// ParsePollEnd reads the content of a row of VerbPollEnd.
func ParsePollEnd(content string) (*PollEnd, error) { return parse[PollEnd]("end of a poll", content) }

// The characters after the digit of a number's emoji; the first may be missing.
const (
	emojiStyle = "\ufe0f"
	keycap     = "\u20e3"
	tenEmoji   = "🔟"
)

// OptionEmoji is the emoji of an option's number, from 1 to MaxPollOptions.
func OptionEmoji(option int) string {
	if option == MaxPollOptions {
		return tenEmoji
	}
	return strconv.Itoa(option) + emojiStyle + keycap
}

// OptionOfEmoji returns the number that an emoji shows, 0 for none of 1 to MaxPollOptions.
func OptionOfEmoji(emoji string) int {
	for option := 1; option <= MaxPollOptions; option++ {
		full := OptionEmoji(option)
		if emoji == full || emoji == strings.ReplaceAll(full, emojiStyle, "") {
			return option
		}
	}
	return 0
}

// ReactionVote returns the vote that a reaction to a poll's text is, nil for any other reaction.
// content is that of a row of VerbReaction.
func ReactionVote(content string, options int) *Vote {
	emoji, removed := strings.CutPrefix(content, "-")
	option := OptionOfEmoji(emoji)
	if option == 0 || option > options {
		return nil
	}
	if removed {
		return &Vote{Options: []int{option}, Change: VoteRemoves}
	}
	return &Vote{Options: []int{option}, Change: VoteAdds}
}

// PollState is the state of a poll.
type PollState string

// States of a poll.
const (
	PollOpen   PollState = "open"
	PollClosed PollState = "closed"
)

// StoredPoll is one row of polls. Times are unix ms, 0 for NULL.
type StoredPoll struct {
	ID        int64
	MessageID int64 // the outbound row
	Folder    string
	ChatJID   string
	Topic     string
	Poll      Poll
	State     PollState
	CreatedAt int64
	ClosedAt  int64
	// EndPending means that the poll's message still has to be closed on its platform.
	EndPending bool
}

// Takes reports whether a vote of a time, in unix ms, counts: until the poll closes, whether that is
// stored yet or not, and until its result is known.
func (p *StoredPoll) Takes(castAt int64) bool {
	if p.Poll.ClosesAt != 0 && castAt > p.Poll.ClosesAt {
		return false
	}
	return p.State == PollOpen || p.Poll.Result == nil && castAt <= p.ClosedAt
}

// CastAt is when a row's vote was cast, in unix ms: the platform's time, where it says one, which may be
// long before the row arrived.
func (m *Message) CastAt() int64 {
	if m.Timestamp > 0 {
		return min(m.Timestamp, m.ReceivedAt)
	}
	return m.ReceivedAt
}

// PollVote is one voter's choice in a poll.
type PollVote struct {
	Voter   string // the sender
	Name    string
	Options []int // numbers from 1, in the order in which they were chosen
	At      int64 // unix ms
}
