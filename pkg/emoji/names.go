package emoji

import (
	"strings"
	"unicode"
)

// table lists common emoji with their names on Slack. Of several names the first one is sent.
const table = `
👍 +1 thumbsup
👎 -1 thumbsdown
❤️ heart
😂 joy
🎉 tada
👀 eyes
✅ white_check_mark
✔️ heavy_check_mark
☑️ ballot_box_with_check
❌ x
🚫 no_entry_sign
🔥 fire
🙏 pray
👏 clap
🙌 raised_hands
💯 100
🚀 rocket
🤔 thinking_face
😄 smile
😀 grinning
😃 smiley
😁 grin
🙂 slightly_smiling_face
😉 wink
😊 blush
😍 heart_eyes
😎 sunglasses
😅 sweat_smile
😆 laughing satisfied
🤣 rolling_on_the_floor_laughing
😭 sob
😢 cry
😮 open_mouth
😱 scream
😡 rage
😐 neutral_face
😴 sleeping
🤷 shrug
🤦 face_palm
👌 ok_hand
👋 wave
✋ hand raised_hand
💪 muscle
🤝 handshake
✌️ v
🤞 crossed_fingers
👆 point_up_2
👇 point_down
👉 point_right
👈 point_left
⭐ star
✨ sparkles
⚡ zap
💡 bulb
⚠️ warning
❗ exclamation heavy_exclamation_mark
❓ question
➕ heavy_plus_sign
➖ heavy_minus_sign
🐛 bug
📌 pushpin
📎 paperclip
📝 memo pencil
🔒 lock
🔧 wrench
⏳ hourglass_flowing_sand
⌛ hourglass
⏰ alarm_clock
☕ coffee
🍕 pizza
🍺 beer
🎂 birthday
🏆 trophy
💔 broken_heart
🧡 orange_heart
💛 yellow_heart
💚 green_heart
💙 blue_heart
💜 purple_heart
🤖 robot_face
💩 hankey poop
👻 ghost
💀 skull
🤯 exploding_head
🥳 partying_face
🫡 saluting_face
🟢 large_green_circle
🟡 large_yellow_circle
🔴 red_circle
1️⃣ one
2️⃣ two
3️⃣ three
4️⃣ four
5️⃣ five
6️⃣ six
7️⃣ seven
8️⃣ eight
9️⃣ nine
🔟 keycap_ten
`

// tones are the skin tones of emoji, from ::skin-tone-2 to ::skin-tone-6.
const tones = "🏻🏼🏽🏾🏿"

// FromName is the emoji with a name, as in "+1" or "wave::skin-tone-3"; the name between colons
// where it is not known.
func FromName(name string) string {
	base, tone, _ := strings.Cut(name, "::skin-tone-")
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		for i := 1; i < len(fields); i++ {
			if fields[i] == base {
				return withTone(fields[0], tone)
			}
		}
	}
	return ":" + name + ":"
}

// withTone adds a skin tone, "2" to "6", to an emoji.
func withTone(emoji, tone string) string {
	if len(tone) == 1 && tone[0] >= '2' && tone[0] <= '6' {
		return withoutTone(emoji) + string([]rune(tones)[tone[0]-'2'])
	}
	return emoji
}

// Name is Slack's name of an emoji, which may also be given as a name between colons; "" if it
// is not known.
func Name(of string) string {
	if name, ok := strings.CutPrefix(of, ":"); ok {
		name = strings.TrimSuffix(name, ":")
		if strings.ContainsFunc(name, unicode.IsSpace) {
			return ""
		}
		return name
	}
	base := withoutTone(of)
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) > 1 && withoutTone(fields[0]) == base {
			return fields[1] + toneSuffix(of)
		}
	}
	return ""
}

// withoutTone removes the skin tone and the variation selector U+FE0F, which clients often leave out.
func withoutTone(emoji string) string {
	return strings.Map(func(r rune) rune {
		if r == '\ufe0f' || strings.ContainsRune(tones, r) {
			return -1
		}
		return r
	}, emoji)
}

func toneSuffix(emoji string) string {
	for i, r := range []rune(tones) {
		if strings.ContainsRune(emoji, r) {
			return "::skin-tone-" + string(rune('2'+i))
		}
	}
	return ""
}
