package slack

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// The documented limits of blocks, in characters where nothing else is said.
const (
	maxSection  = 3000
	maxElements = 25 // of an actions block
	maxLabel    = 75
	maxActionID = 255
	maxValue    = 2000
)

// blockText is a text in a block.
type blockText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// block is an actions block.
type block struct {
	Type     string    `json:"type"`
	Elements []element `json:"elements"`
}

// element is an element of an actions block.
type element struct {
	Type     string     `json:"type"`
	ActionID string     `json:"action_id"`
	Value    string     `json:"value"`
	Text     *blockText `json:"text"`
}

// checkBlocks validates the blocks of a message. It refuses types of blocks that it cannot check.
func checkBlocks(raw []json.RawMessage) error {
	for _, one := range raw {
		var b struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal(one, &b) // no type is refused
		if b.Type == "section" && validSection(one) || b.Type == "actions" && validActions(one) || b.Type == "divider" {
			continue
		}
		return errorCode("invalid_blocks")
	}
	return nil
}

func (t *blockText) valid(limit int) bool {
	return (t.Type == "mrkdwn" || t.Type == "plain_text") && t.Text != "" && utf8.RuneCountInString(t.Text) <= limit
}

func validSection(raw json.RawMessage) bool {
	var b struct {
		Text   *blockText      `json:"text"`
		Fields json.RawMessage `json:"fields"`
	}
	return json.Unmarshal(raw, &b) == nil && b.Text != nil && b.Text.valid(maxSection) && b.Fields == nil
}

func validActions(raw json.RawMessage) bool {
	var b block
	if json.Unmarshal(raw, &b) != nil || len(b.Elements) == 0 || len(b.Elements) > maxElements {
		return false
	}
	var ids []string
	for _, e := range b.Elements {
		if e.Type == "" || utf8.RuneCountInString(e.ActionID) > maxActionID ||
			utf8.RuneCountInString(e.Value) > maxValue {
			return false
		}
		if e.Type == "button" && (e.Text == nil || e.Text.Type != "plain_text" || !e.Text.valid(maxLabel)) {
			return false
		}
		if e.ActionID != "" && slices.Contains(ids, e.ActionID) {
			return false
		}
		ids = append(ids, e.ActionID)
	}
	return true
}

// buttons are the buttons of a message.
func (m *Message) buttons() (all []element) {
	var blocks []json.RawMessage
	_ = json.Unmarshal(m.Blocks, &blocks) // none has no buttons
	for _, one := range slices.Concat(blocks, m.attachedBlocks()) {
		var b block
		if json.Unmarshal(one, &b) != nil || b.Type != "actions" {
			continue
		}
		for _, e := range b.Elements {
			if e.Type == "button" {
				all = append(all, e)
			}
		}
	}
	return all
}

// attachedBlocks are the blocks in a message's attachments.
func (m *Message) attachedBlocks() (all []json.RawMessage) {
	var attachments []struct {
		Blocks []json.RawMessage `json:"blocks"`
	}
	_ = json.Unmarshal(m.Attachments, &attachments) // none has no blocks
	for _, a := range attachments {
		all = append(all, a.Blocks...)
	}
	return all
}

// Buttons are the values of a message's buttons by their labels.
func (m *Message) Buttons() map[string]string {
	all := map[string]string{}
	for _, b := range m.buttons() {
		if b.Text != nil {
			all[b.Text.Text] = b.Value
		}
	}
	return all
}

// pressable returns an error unless a message of the bot has a button.
func (s *Server) pressable(m *Message, actionID, value string) error {
	switch {
	case m == nil:
		return fmt.Errorf("no such message")
	case m.User != s.me.ID:
		return fmt.Errorf("message %s is not the bot's", m.TS)
	case !slices.ContainsFunc(m.buttons(), func(e element) bool { return e.ActionID == actionID && e.Value == value }):
		return fmt.Errorf("message %s has no button %s with %q", m.TS, actionID, value)
	}
	return nil
}
