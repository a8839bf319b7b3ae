package main

import (
	"html"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Text inside a prompt is escaped, so < and > belong to tags alone.
var (
	messagesBlock = regexp.MustCompile(`(?s)<messages(?:\s[^>]*)?>(.*?)</messages>`)
	messageTag    = regexp.MustCompile(`(?s)<message(?:\s[^>]*[^/>])?>(.*?)</message>`)
	anyTag        = regexp.MustCompile(`<[^>]*>`)
)

// messageTexts returns the text of each message of the turn, oldest first,
// without the elements inside it, such as attachments.
func messageTexts(prompt string) []string {
	block := messagesBlock.FindStringSubmatch(prompt)
	if block == nil {
		return nil
	}
	var texts []string
	for _, m := range messageTag.FindAllStringSubmatch(block[1], -1) {
		text := html.UnescapeString(anyTag.ReplaceAllString(m[1], ""))
		texts = append(texts, strings.TrimSpace(text))
	}
	return texts
}

// order is what a message asks of the demo.
type order struct {
	slow   time.Duration
	frames int // 0 and 1 are both one frame
	silent bool
	fail   bool
	crash  bool
}

const (
	maxSlow   = 3600 // seconds
	maxFrames = 100
)

// parseOrder reads the commands text begins with, in any order and case. A
// number that is missing or out of range makes it ordinary text.
func parseOrder(text string) order {
	var o order
	words := strings.Fields(strings.ToLower(text))
	for len(words) > 0 {
		used := o.take(words)
		if used == 0 {
			break
		}
		words = words[used:]
	}
	return o
}

// take obeys the command at the head of words and returns how many it used.
func (o *order) take(words []string) int {
	switch words[0] {
	case "silent":
		o.silent = true
	case "error":
		o.fail = true
	case "crash":
		o.crash = true
	case "slow":
		seconds, ok := number(words, maxSlow)
		if !ok {
			return 0
		}
		o.slow = time.Duration(seconds * float64(time.Second))
		return 2
	case "frames":
		frames, ok := number(words, maxFrames)
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

func number(words []string, most float64) (float64, bool) {
	if len(words) < 2 {
		return 0, false
	}
	n, err := strconv.ParseFloat(words[1], 64)
	return n, err == nil && n >= 0 && n <= most
}
