package main

import (
	"html"
	"regexp"
	"strconv"
	"strings"
	"time"

	"arizuko/pkg/agentproto"
)

// Text in a prompt is escaped: < and > only occur in tags.
var (
	messagesBlock = regexp.MustCompile(`(?s)<messages(?:\s[^>]*)?>(.*?)</messages>`)
	messageTag    = regexp.MustCompile(`(?s)<message(?:\s[^>]*[^/>])?>(.*?)</message>`)
	transcriptTag = regexp.MustCompile(`(?s)<transcript(?:\s[^>]*)?>(.*?)</transcript>`)
	anyTag        = regexp.MustCompile(`<[^>]*>`)
)

// fileName matches the names that the instruction until takes: plain ones in the folder itself.
var fileName = regexp.MustCompile(`^[a-z0-9_-]+$`)

// messageTexts returns the text of each message of the turn, oldest first,
// without the elements inside it, such as attachments.
func messageTexts(prompt string) []string {
	block := messagesBlock.FindStringSubmatch(prompt)
	if block == nil {
		return nil
	}
	var texts []string
	for _, m := range messageTag.FindAllStringSubmatch(block[1], -1) {
		text := html.UnescapeString(anyTag.ReplaceAllString(transcriptTag.ReplaceAllString(m[1], ""), ""))
		texts = append(texts, strings.TrimSpace(text))
	}
	return texts
}

// transcripts returns those of the audio files of the turn's messages.
func transcripts(prompt string) (texts []string) {
	for _, block := range messagesBlock.FindAllString(prompt, 1) {
		for _, t := range transcriptTag.FindAllStringSubmatch(block, -1) {
			texts = append(texts, strings.TrimSpace(html.UnescapeString(t[1])))
		}
	}
	return texts
}

// order is the instructions in a message.
type order struct {
	slow   time.Duration
	until  string   // it answers once its folder has this file
	frames int      // 0 and 1 are both one frame
	work   bool     // it shows a plan and tools before it answers
	stream bool     // it shows the answer piece by piece
	ask    []string // options of a question, the answer to which it says
	allow  bool     // it asks for permission to append a line to a file
	spend  float64  // US dollars that it says it has used, little by little
	fold   bool     // messages that come while it works are part of the answer
	silent bool
	system bool
	fail   bool
	kind   agentproto.Kind // of the error
	retry  float64         // seconds
	result bool            // the error has a result
	crash  bool
}

const (
	maxSlow  = 3600 // seconds
	maxSpend = 1000 // US dollars
)

// parseOrder parses the instructions at the beginning of a text, in any order and case. With a number
// that is missing or out of range it is ordinary text.
func parseOrder(text string) order {
	var o order
	words := strings.Fields(strings.ToLower(text))
	for len(words) > 0 {
		used := o.apply(words)
		if used == 0 {
			break
		}
		words = words[used:]
	}
	return o
}

// apply parses the first instruction and returns its number of words, 0 if there is none.
func (o *order) apply(words []string) int {
	switch words[0] {
	case "silent":
		o.silent = true
	case "fold":
		o.fold = true
	case "ask_user":
		o.ask = words[1:]
		if (&agentproto.Ask{Question: "?", Options: o.ask}).Check() != nil {
			o.ask = []string{"yes", "no"}
		}
		return len(words)
	case "ask_permission":
		o.allow = true
	case "work":
		o.work = true
	case "stream":
		o.stream = true
	case "system":
		o.system = true
	case "error":
		o.fail = true
		return 1 + o.applyKind(words[1:])
	case "crash":
		o.crash = true
	case "slow":
		seconds, ok := number(words, maxSlow)
		if !ok {
			return 0
		}
		o.slow = time.Duration(seconds * float64(time.Second))
		return 2
	case "until":
		if len(words) < 2 || !fileName.MatchString(words[1]) {
			return 0
		}
		o.until = words[1]
		return 2
	case "spend":
		usd, ok := number(words, maxSpend)
		if !ok {
			return 0
		}
		o.spend = usd
		return 2
	case "frames":
		frames, ok := number(words, agentproto.MaxFrames)
		if !ok {
			return 0
		}
		o.frames = int(frames)
		return 2
	default:
		return 0
	}
	return 1
}

// applyKind parses the words after error and returns their number.
func (o *order) applyKind(words []string) int {
	if len(words) == 0 {
		return 0
	}
	if words[0] == "result" {
		o.result = true
		return 1
	}
	kind := agentproto.Kind(words[0])
	if !kind.Known() {
		return 0
	}
	o.kind = kind
	if seconds, ok := number(words, agentproto.MaxRetryAfter.Seconds()); ok && kind == agentproto.KindTransient {
		o.retry = seconds
		return 2
	}
	return 1
}

func number(words []string, max float64) (float64, bool) {
	if len(words) < 2 {
		return 0, false
	}
	n, err := strconv.ParseFloat(words[1], 64)
	return n, err == nil && n >= 0 && n <= max
}
