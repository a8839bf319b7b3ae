package inbound

import (
	"cmp"
	"strconv"
	"strings"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/teled/internal/telegramapi"
)

// bodyOf makes the content of a message: where it was forwarded from, its text, then what else it has.
func bodyOf(m *telegramapi.Message, me Self) adapter.Body {
	var lines []string
	if m.ForwardOrigin != nil && !m.IsAutomaticForward {
		lines = append(lines, "forwarded from "+originName(m.ForwardOrigin)+":")
	}
	text, entities := m.Text, m.Entities
	if text == "" {
		text, entities = m.Caption, m.CaptionEntities
	}
	words, addressed := plain(text, entities, me)
	if words != "" {
		lines = append(lines, words)
	}
	thing := describe(m)
	if text == "" && thing == "" && !hasFile(m) {
		if m.IsNotice() {
			return adapter.Body{Empty: true}
		}
		thing = plaintext.Bracket("unsupported message")
	}
	if thing != "" {
		lines = append(lines, thing)
	}
	return adapter.Body{Content: strings.Join(lines, "\n"), Addressed: addressed}
}

func originName(o *telegramapi.MessageOrigin) string {
	switch {
	case o.SenderUser != nil:
		return userName(o.SenderUser)
	case o.SenderChat != nil:
		return cmp.Or(chatName(o.SenderChat), "a group")
	case o.Chat != nil:
		return cmp.Or(chatName(o.Chat), "a channel")
	}
	return cmp.Or(plaintext.Line(o.SenderUserName), plaintext.UnknownUser)
}

// describe names in brackets what a message has besides text and files, "" for nothing.
func describe(m *telegramapi.Message) string {
	switch {
	case m.Sticker != nil:
		return plaintext.Bracket("sticker", m.Sticker.Emoji, m.Sticker.SetName)
	case m.Venue != nil:
		return plaintext.Bracket("venue", m.Venue.Title, m.Venue.Address, point(&m.Venue.Location))
	case m.Location != nil && m.Location.LivePeriod > 0:
		return plaintext.Bracket("live location", point(m.Location))
	case m.Location != nil:
		return plaintext.Bracket("location", point(m.Location))
	case m.Contact != nil:
		return contact(m.Contact)
	case m.Poll != nil:
		return poll(m.Poll)
	case m.Dice != nil:
		return plaintext.Bracket("dice", m.Dice.Emoji, strconv.Itoa(m.Dice.Value))
	case m.Game != nil:
		return plaintext.Bracket("game", m.Game.Title)
	case m.Invoice != nil:
		return plaintext.Bracket("invoice", m.Invoice.Title)
	case m.Checklist != nil:
		return checklist(m.Checklist)
	}
	for _, thing := range []struct {
		there telegramapi.Present
		name  string
	}{
		{m.Story, "story"}, {m.LivePhoto, "live photo"}, {m.PaidMedia, "paid media"}, {m.RichMessage, "rich message"},
		{m.Giveaway, "giveaway"}, {m.GiveawayWinners, "giveaway winners"}, {m.Gift, "gift"}, {m.UniqueGift, "gift"},
		{m.WebAppData, "web app data"},
	} {
		if thing.there {
			return plaintext.Bracket(thing.name)
		}
	}
	return ""
}

func contact(c *telegramapi.Contact) string {
	user := ""
	if c.UserID != 0 {
		user = jid(c.UserID)
	}
	return plaintext.Bracket("contact", c.FirstName+" "+c.LastName, c.PhoneNumber, user)
}

func poll(p *telegramapi.Poll) string {
	lines := []string{plaintext.Bracket("poll", p.Question)}
	for _, o := range p.Options {
		lines = append(lines, "- "+plaintext.Line(o.Text))
	}
	return strings.Join(lines, "\n")
}

func checklist(c *telegramapi.Checklist) string {
	lines := []string{plaintext.Bracket("checklist", c.Title)}
	for _, t := range c.Tasks {
		lines = append(lines, "- "+plaintext.Line(t.Text))
	}
	return strings.Join(lines, "\n")
}

func point(l *telegramapi.Location) string {
	degrees := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	return degrees(l.Latitude) + ", " + degrees(l.Longitude)
}
