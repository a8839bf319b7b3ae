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
	thing := describe(&m.Things, me)
	if text == "" && thing == "" && len(filesOf(&m.Things)) == 0 {
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
func describe(t *telegramapi.Things, me Self) string {
	switch {
	case t.Sticker != nil:
		return plaintext.Bracket("sticker", t.Sticker.Emoji, t.Sticker.SetName)
	case t.Venue != nil:
		return plaintext.Bracket("venue", t.Venue.Title, t.Venue.Address, point(&t.Venue.Location))
	case t.Location != nil && t.Location.LivePeriod > 0:
		return plaintext.Bracket("live location", point(t.Location))
	case t.Location != nil:
		return plaintext.Bracket("location", point(t.Location))
	case t.Contact != nil:
		return contact(t.Contact, me)
	case t.Poll != nil:
		return poll(t.Poll)
	case t.Dice != nil:
		return plaintext.Bracket("dice", t.Dice.Emoji, strconv.Itoa(t.Dice.Value))
	case t.Game != nil:
		return plaintext.Bracket("game", t.Game.Title, t.Game.Description)
	case t.Invoice != nil:
		return plaintext.Bracket("invoice", t.Invoice.Title, t.Invoice.Description)
	case t.Checklist != nil:
		return checklist(t.Checklist)
	case t.RichMessage != nil:
		return cmp.Or(t.RichMessage.Text, plaintext.Bracket("rich message"))
	case t.PaidMedia != nil:
		return paidMedia(t.PaidMedia)
	}
	return describeRare(t)
}

func describeRare(t *telegramapi.Things) string {
	switch {
	case t.Story != nil:
		return plaintext.Bracket("story", chatName(&t.Story.Chat))
	case t.WebAppData != nil:
		return plaintext.Bracket("web app data", t.WebAppData.ButtonText, t.WebAppData.Data)
	case t.Giveaway != nil:
		return giveaway("giveaway", t.Giveaway)
	case t.GiveawayWinners != nil:
		return giveaway("giveaway winners", t.GiveawayWinners)
	case t.Gift != nil:
		return plaintext.Bracket("gift", t.Gift.Text)
	case t.UniqueGift != nil:
		return plaintext.Bracket("gift", t.UniqueGift.Text)
	}
	return ""
}

func giveaway(what string, g *telegramapi.Giveaway) string {
	winners := ""
	if g.WinnerCount > 0 {
		winners = count(g.WinnerCount, "winner")
	}
	return plaintext.Bracket(what, winners, g.PrizeDescription)
}

func count(n int, of string) string {
	if n != 1 {
		of += "s"
	}
	return strconv.Itoa(n) + " " + of
}

// paidMedia says what is for sale; what the bot may see is a file beside it.
func paidMedia(p *telegramapi.PaidMedia) string {
	return plaintext.Bracket("paid media", count(p.StarCount, "star"), count(len(p.Media), "item"))
}

func contact(c *telegramapi.Contact, me Self) string {
	user := ""
	if c.UserID != 0 {
		user = me.jid(c.UserID)
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
		mark := "- [ ] "
		if t.CompletionDate != 0 {
			mark = "- [x] "
		}
		lines = append(lines, mark+plaintext.Line(t.Text))
	}
	return strings.Join(lines, "\n")
}

func point(l *telegramapi.Location) string {
	degrees := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	return degrees(l.Latitude) + ", " + degrees(l.Longitude)
}
