package telegramapi

// RichMessage is a message of blocks, such as headings, lists and tables. They are left as JSON decodes them, since a
// block or a part of a text may be of any kind: an object whose "text" is a string, a part, or a list of both.
type RichMessage struct {
	Blocks any `json:"blocks"`
}
