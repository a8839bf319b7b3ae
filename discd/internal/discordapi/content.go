package discordapi

import (
	"encoding/json"
	"iter"
	"net/url"
	"slices"
	"strings"
)

// Attachment is a file of a message.
type Attachment struct {
	Filename    string  `json:"filename"`
	Title       string  `json:"title"`       // its name without the extension, where Discord has changed that
	Description string  `json:"description"` // for readers who don't see it
	ContentType string  `json:"content_type"`
	Size        int64   `json:"size"`          // bytes
	URL         string  `json:"url"`           // signed, valid for a day
	Seconds     float64 `json:"duration_secs"` // of a voice message, like Waveform
	Waveform    string  `json:"waveform"`
}

// EmbedRich is the type of a bot's embed; the others are previews of links.
const EmbedRich = "rich"

// Embed is a box of a bot's message, or a link preview.
type Embed struct {
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	URL         string `json:"url"`
	Author      Titled `json:"author"`
	Fields      []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"fields"`
	Footer struct {
		Text string `json:"text"`
	} `json:"footer"`
	Image     Media `json:"image"`
	Thumbnail Media `json:"thumbnail"`
	Video     Media `json:"video"`
}

// Media are the pictures and the video of an embed; those that it lacks have no URL.
func (e *Embed) Media() []Media { return []Media{e.Image, e.Thumbnail, e.Video} }

// Media is a picture, a video or another file that an embed or a component shows. An uploaded one is not among the
// attachments of its message.
type Media struct {
	URL         string `json:"url"`
	ContentType string `json:"content_type"`
	Description string `json:"description"` // in an embed
}

// IsUpload reports whether it was uploaded to Discord, which can give it out; all others are on servers of strangers.
func (m Media) IsUpload() bool {
	where, err := url.Parse(m.URL)
	return err == nil && where.Scheme == "https" && isCDN(where.Host) && strings.HasPrefix(where.Path, "/attachments/")
}

// The types of components that are distinguished. Those from ComponentMenu to ComponentChannels are menus.
const (
	ComponentButton   = 2
	ComponentMenu     = 3 // of texts
	ComponentChannels = 8 // a menu of channels
)

// maxDepth bounds how deep components stand in one another. Discord allows three levels.
const maxDepth = 8

// Component is a part of a bot's message: a text, a picture, a control, or a box that holds others.
type Component struct {
	Type        int    `json:"type"`
	Content     string `json:"content"` // of a text, in Markdown
	Label       string `json:"label"`
	Description string `json:"description"` // of a picture
	Placeholder string `json:"placeholder"` // of a menu
	URL         string `json:"url"`         // of a button
	Emoji       *Emoji `json:"emoji"`
	Options     []struct {
		Label string `json:"label"`
	} `json:"options"` // of a menu
	Media Media       `json:"media"`
	Items []Component `json:"items"` // of a gallery, with Media and Description
	File  Media       `json:"file"`
	Name  string      `json:"name"` // of the file
	Size  int64       `json:"size"` // of the file, in bytes

	Components []Component `json:"components"`
	Accessory  *Component  `json:"accessory"`
	Component  *Component  `json:"component"`
}

// Components are those of a message. Fields of other types than expected are left out, so that a newer kind of
// component costs no message.
type Components []Component

// UnmarshalJSON implements json.Unmarshaler.
func (c *Components) UnmarshalJSON(text []byte) error {
	_ = json.Unmarshal(text, (*[]Component)(c)) // an error comes after all that can be decoded
	return nil
}

// All are the components with those that they hold, in the order in which users read them.
func (c Components) All() iter.Seq[*Component] {
	return func(yield func(*Component) bool) { walk(c, maxDepth, yield) }
}

// walk yields components down to a depth, and reports whether more are wanted.
func walk(all []Component, depth int, yield func(*Component) bool) (more bool) {
	if depth == 0 {
		return true
	}
	for i := range all {
		c := &all[i]
		inside := slices.Concat(c.Items, c.Components, only(c.Component), only(c.Accessory))
		if !yield(c) || !walk(inside, depth-1, yield) {
			return false
		}
	}
	return true
}

// only is a list of one component, or of none.
func only(c *Component) []Component {
	if c == nil {
		return nil
	}
	return []Component{*c}
}
