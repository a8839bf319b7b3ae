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
	maxField    = 2000
	maxFields   = 10 // of a section
	maxHeader   = 150
	maxAltText  = 2000
	maxImageURL = 3000
	maxMarkdown = 12_000 // of all markdown blocks of a message
	maxContext  = 10     // elements
	maxElements = 25     // of an actions block
	maxLabel    = 75
	maxActionID = 255
	maxBlockID  = 255
	maxValue    = 2000
	maxRows     = 100 // of a table, of which a message has one
	maxColumns  = 20
	maxTable    = 10_000
)

// blockText is a text in a block.
type blockText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// blockTypes are those of messages. Each may have more rules than this fake checks.
var blockTypes = []string{
	"actions", "call", "card", "carousel", "container", "context", "context_actions", "data_table",
	"data_visualization", "divider", "file", "header",
	"image", "input", "markdown", "plan", "rich_text", "section", "table", "task_card", "video",
}

// block is an actions block.
type block struct {
	Type     string    `json:"type"`
	Elements []element `json:"elements"` // of an actions block
}

// element is an element of an actions block.
type element struct {
	Type     string     `json:"type"`
	ActionID string     `json:"action_id"`
	Value    string     `json:"value"`
	Text     *blockText `json:"text"`
}

// blockChecks validate the fields of some types of blocks; others are only checked for a type.
func blockChecks() map[string]func(raw json.RawMessage) bool {
	return map[string]func(raw json.RawMessage) bool{
		"section": validSection, "actions": validActions, "header": validHeader, "context": validContext,
		"image":     validImage,
		"rich_text": validRichText, "table": validTable, "markdown": validMarkdown,
	}
}

// checkBlocks validates the blocks of a message.
func checkBlocks(raw []json.RawMessage) error {
	var ids []string
	tables, markdown, checks := 0, 0, blockChecks()
	for _, one := range raw {
		var b struct {
			Type string `json:"type"`
			ID   string `json:"block_id"`
		}
		valid := json.Unmarshal(one, &b) == nil && slices.Contains(blockTypes, b.Type) && len(b.ID) <= maxBlockID &&
			(b.ID == "" || !slices.Contains(ids, b.ID))
		if check := checks[b.Type]; valid && check != nil {
			valid = check(one)
		}
		switch ids = append(ids, b.ID); b.Type {
		case "table":
			tables++
		case "markdown":
			markdown += utf8.RuneCountInString(markdownOf(one))
		}
		if !valid || tables > 1 || markdown > maxMarkdown {
			return errorCode("invalid_blocks")
		}
	}
	return nil
}

func (t *blockText) valid(limit int) bool {
	return (t.Type == "mrkdwn" || t.Type == "plain_text") && t.Text != "" && utf8.RuneCountInString(t.Text) <= limit
}

func validSection(raw json.RawMessage) bool {
	var b struct {
		Text   *blockText   `json:"text"`
		Fields []*blockText `json:"fields"`
	}
	if json.Unmarshal(raw, &b) != nil || b.Text == nil && len(b.Fields) == 0 || len(b.Fields) > maxFields {
		return false
	}
	bad := func(t *blockText) bool { return t == nil || !t.valid(maxField) }
	return (b.Text == nil || b.Text.valid(maxSection)) && !slices.ContainsFunc(b.Fields, bad)
}

func validHeader(raw json.RawMessage) bool {
	var b struct {
		Text *blockText `json:"text"`
	}
	return json.Unmarshal(raw, &b) == nil && b.Text != nil && b.Text.Type == "plain_text" && b.Text.valid(maxHeader)
}

// picture is an image, as a block or an element.
type picture struct {
	Type string          `json:"type"`
	URL  string          `json:"image_url"`
	File json.RawMessage `json:"slack_file"`
	Alt  string          `json:"alt_text"`
}

func (p *picture) valid() bool {
	return p.Alt != "" && utf8.RuneCountInString(p.Alt) <= maxAltText && (p.URL != "") != (len(p.File) > 0) &&
		len(p.URL) <= maxImageURL
}

func validImage(raw json.RawMessage) bool {
	var p picture
	return json.Unmarshal(raw, &p) == nil && p.valid()
}

func validContext(raw json.RawMessage) bool {
	var b struct {
		Elements []json.RawMessage `json:"elements"`
	}
	if json.Unmarshal(raw, &b) != nil || len(b.Elements) == 0 || len(b.Elements) > maxContext {
		return false
	}
	for _, one := range b.Elements {
		var text blockText
		isText := json.Unmarshal(one, &text) == nil && text.Type != "image"
		if isText && !text.valid(maxSection) || !isText && !validImage(one) {
			return false
		}
	}
	return true
}

func validRichText(raw json.RawMessage) bool {
	var b struct {
		Elements []struct {
			Type string `json:"type"`
		} `json:"elements"`
	}
	parts := []string{"rich_text_section", "rich_text_list", "rich_text_preformatted", "rich_text_quote"}
	if json.Unmarshal(raw, &b) != nil || b.Elements == nil {
		return false
	}
	for _, e := range b.Elements {
		if !slices.Contains(parts, e.Type) {
			return false
		}
	}
	return true
}

// validTable refuses empty cells, as Slack does.
func validTable(raw json.RawMessage) bool {
	var b struct {
		Rows [][]struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"rows"`
	}
	if json.Unmarshal(raw, &b) != nil || len(b.Rows) == 0 || len(b.Rows) > maxRows {
		return false
	}
	size := 0
	for _, row := range b.Rows {
		if len(row) == 0 || len(row) > maxColumns {
			return false
		}
		for _, cell := range row {
			if cell.Type != "rich_text" && (cell.Type != "raw_text" || cell.Text == "") {
				return false
			}
			size += utf8.RuneCountInString(cell.Text)
		}
	}
	return size <= maxTable
}

func markdownOf(raw json.RawMessage) string {
	var b struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &b) // "" is refused
	return b.Text
}

func validMarkdown(raw json.RawMessage) bool { return markdownOf(raw) != "" }

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
	for _, one := range blocks {
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
