package inbound

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/teled/internal/telegramapi"
)

// bodyOf makes the content of a message: where it was forwarded from, its text, then all else. A post that
// Telegram itself forwards into the group of its channel addresses no bot: it was written for the channel.
func bodyOf(m *telegramapi.Message, me Self) adapter.Body {
	reader, origin := me, ""
	if m.IsAutomaticForward {
		reader.ID, reader.Username = 0, ""
	}
	if m.ForwardOrigin != nil {
		origin = "forwarded from " + originName(m.ForwardOrigin) + ":"
	}
	words, addressed := wordsOf(m, reader)
	extra := describe(&m.Things, me)
	if words == "" && !addressed && extra == "" && len(filesOf(&m.Things)) == 0 {
		if m.IsNotice() {
			return adapter.Body{Empty: true}
		}
		extra = plaintext.Bracket(map[bool]string{true: "rich message",
			false: "unsupported message"}[m.RichMessage != nil])
	}
	return adapter.Body{Content: joined("\n", origin, words, extra), Addressed: addressed}
}

// wordsOf is the text of a message, without mentions of the bot.
func wordsOf(m *telegramapi.Message, me Self) (words string, addressed bool) {
	switch {
	case m.Text != "":
		return plain(m.Text, m.Entities, me)
	case m.RichMessage != nil:
		r := readRich(m.RichMessage, me)
		return r.text, r.addressed
	}
	return plain(m.Caption, m.CaptionEntities, me)
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

// describe names in brackets all that a message has besides text and files, "" for nothing.
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
		return poll(t.Poll, me)
	case t.Dice != nil:
		return plaintext.Bracket("dice", t.Dice.Emoji, strconv.Itoa(t.Dice.Value))
	case t.Game != nil:
		return joined("\n", plaintext.Bracket("game", t.Game.Title, t.Game.Description), t.Game.Text)
	case t.Invoice != nil:
		return plaintext.Bracket("invoice", t.Invoice.Title, t.Invoice.Description)
	case t.Checklist != nil:
		return checklist("checklist", t.Checklist)
	case t.PaidMedia != nil:
		return paidMedia(t.PaidMedia)
	}
	return describeRare(t, me)
}

func describeRare(t *telegramapi.Things, me Self) string {
	switch {
	case t.Story != nil:
		return story(t.Story)
	case t.WebAppData != nil:
		return plaintext.Bracket("web app data", t.WebAppData.ButtonText, t.WebAppData.Data)
	case t.Giveaway != nil:
		return giveaway("giveaway", t.Giveaway)
	case t.GiveawayWinners != nil:
		return giveaway("giveaway winners", t.GiveawayWinners)
	case t.Gift != nil:
		return plaintext.Bracket("gift", t.Gift.Text)
	case t.UniqueGift != nil:
		number := ""
		if n := t.UniqueGift.Gift.Number; n > 0 {
			number = "number " + strconv.Itoa(n)
		}
		return plaintext.Bracket("gift", t.UniqueGift.Gift.Name, number, t.UniqueGift.Text)
	case t.UsersShared != nil:
		return usersShared(t.UsersShared, me)
	case t.ChatShared != nil:
		return plaintext.Bracket("shared chat", t.ChatShared.Title, handle(t.ChatShared.Username),
			me.jid(t.ChatShared.ID))
	}
	return describeChange(t)
}

// describeChange names a user's change of something that was sent before.
func describeChange(t *telegramapi.Things) string {
	switch {
	case t.TasksAdded != nil:
		return checklist("added to the checklist", t.TasksAdded)
	case t.TasksDone != nil:
		return tasksDone(t.TasksDone)
	case t.OptionAdded != nil:
		return plaintext.Bracket("added to the poll", t.OptionAdded.Text)
	case t.OptionDeleted != nil:
		return plaintext.Bracket("deleted from the poll", t.OptionDeleted.Text)
	case t.PostDeclined != nil:
		return plaintext.Bracket("suggested post declined", t.PostDeclined.Comment)
	}
	return ""
}

func story(s *telegramapi.Story) string { return plaintext.Bracket("story", chatName(&s.Chat)) }

func usersShared(u *telegramapi.UsersShared, me Self) string {
	var names []string
	for i := range u.Users {
		s := &u.Users[i]
		names = append(names, joined(", ", plaintext.Line(s.FirstName+" "+s.LastName), handle(s.Username),
			me.jid(s.ID)))
	}
	return plaintext.Bracket("shared users", names...)
}

func giveaway(what string, g *telegramapi.Giveaway) string {
	var details []string
	for _, n := range []struct {
		n  int
		of string
	}{{g.WinnerCount, "winner"}, {g.Stars, "star"}, {g.PremiumMonths, "month"}} {
		if n.n > 0 {
			details = append(details, count(n.n, n.of))
		}
	}
	for i := range g.Winners {
		details = append(details, userName(&g.Winners[i]))
	}
	return plaintext.Bracket(what, append(details, g.PrizeDescription)...)
}

func count(n int, of string) string {
	if n != 1 {
		of += "s"
	}
	return strconv.Itoa(n) + " " + of
}

// paidMedia names the media for sale; those that the bot may see are files beside it.
func paidMedia(p *telegramapi.PaidMedia) string {
	return plaintext.Bracket("paid media", count(p.StarCount, "star"), count(len(p.Media), "item"))
}

func contact(c *telegramapi.Contact, me Self) string {
	user := ""
	if c.UserID != 0 {
		user = me.jid(c.UserID)
	}
	lines := []string{plaintext.Bracket("contact", c.FirstName+" "+c.LastName, c.PhoneNumber, user)}
	for line := range strings.Lines(unfolded.Replace(c.VCard)) {
		if name, _, _ := strings.Cut(line, ":"); knownFromContact.MatchString(name) {
			continue
		}
		lines = append(lines, plaintext.Line(line))
	}
	return joined("\n", lines...)
}

// unfolded joins the lines of a card that go on in the next one, which begins with a blank.
var unfolded = strings.NewReplacer("\r\n ", "", "\r\n\t", "", "\n ", "", "\n\t", "")

// knownFromContact matches the names of a card's lines that say nothing new, and of those of pictures and keys.
var knownFromContact = regexp.MustCompile(`^(?i:(item\d+\.)?(BEGIN|END|VERSION|PRODID|UID|REV|N|FN|TEL|PHOTO|LOGO|` +
	`SOUND|KEY)(;.*)?)$`)

func poll(p *telegramapi.Poll, me Self) string {
	lines := []string{plaintext.Bracket("poll", p.Question), p.Description, pollMedia(p.Media, me)}
	for _, o := range p.Options {
		votes := ""
		if o.VoterCount > 0 { // of one that was forwarded
			votes = "(" + count(o.VoterCount, "vote") + ")"
		}
		lines = append(lines, joined(" ", "- "+plaintext.Line(o.Text), votes, pollMedia(o.Media, me)))
	}
	if p.Explanation != "" {
		lines = append(lines, "explanation: "+p.Explanation)
	}
	return joined("\n", lines...)
}

// pollMedia names the media of a poll or an option.
func pollMedia(m *telegramapi.PollMedia, me Self) string {
	if m == nil {
		return ""
	}
	parts := []string{describe(&m.Things, me)}
	for _, f := range filesOf(&m.Things) {
		parts = append(parts, plaintext.Bracket("file", f.FileName))
	}
	if m.Link != nil {
		parts = append(parts, plaintext.Line(m.Link.URL))
	}
	return joined(" ", parts...)
}

func checklist(what string, c *telegramapi.Checklist) string {
	lines := []string{plaintext.Bracket(what, c.Title)}
	for _, t := range c.Tasks {
		mark := "- [ ] "
		if t.CompletionDate != 0 {
			mark = "- [x] "
		}
		lines = append(lines, mark+plaintext.Line(t.Text))
	}
	return strings.Join(lines, "\n")
}

// tasksDone names the tasks that a user marked, by their numbers where Telegram does not send the list.
func tasksDone(d *telegramapi.TasksDone) string {
	names := map[int64]string{}
	if d.Message != nil && d.Message.Checklist != nil {
		for _, t := range d.Message.Checklist.Tasks {
			names[t.ID] = plaintext.Line(t.Text)
		}
	}
	lines := []string{plaintext.Bracket("marked in the checklist")}
	add := func(mark string, ids []int64) {
		for _, id := range ids {
			lines = append(lines, mark+cmp.Or(names[id], "task "+decimal(id)))
		}
	}
	add("- [x] ", d.Done)
	add("- [ ] ", d.NotDone)
	return strings.Join(lines, "\n")
}

func point(l *telegramapi.Location) string {
	degrees := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	return degrees(l.Latitude) + ", " + degrees(l.Longitude)
}
