package slackapi

import "github.com/slack-go/slack"

// Button is a button under a message. A press of it brings its data back.
type Button struct{ Label, Data string }

// WithButtons are the blocks of a message with buttons: a section with its text, of mrkdwn that has at most 3000
// characters, and below it the buttons, at most 25. Slack shows blocks in place of the message's own text.
func WithButtons(text string, buttons []Button) slack.MsgOption {
	section := slack.NewSectionBlock(&slack.TextBlockObject{Type: slack.MarkdownType, Text: text, Verbatim: true}, nil,
		nil,
		slack.SectionBlockOptionExpand(true)) // users see the whole question
	return slack.MsgOptionBlocks(section, actions(buttons))
}

// actions is a block of buttons.
func actions(buttons []Button) slack.Block {
	var elements []slack.BlockElement
	for _, b := range buttons {
		elements = append(elements, slack.NewButtonBlockElement(b.Data, b.Data,
			slack.NewTextBlockObject(slack.PlainTextType, b.Label, false, false)))
	}
	return slack.NewActionBlock("", elements...)
}

// Below is an attachment with a button. The text above it looks like that of any message: in blocks it could have fewer
// characters, and its addresses would be no links.
func Below(b Button) slack.MsgOption {
	return slack.MsgOptionAttachments(slack.Attachment{Blocks: slack.Blocks{BlockSet: []slack.Block{
		actions([]Button{b})}}})
}

// WithoutBlocks takes all blocks of a changed message away.
func WithoutBlocks() slack.MsgOption { return slack.MsgOptionBlocks() }

// WithoutAttachments takes all attachments of a changed message away.
func WithoutAttachments() slack.MsgOption { return slack.MsgOptionAttachments([]slack.Attachment{}...) }
