package slack

import (
	"slices"
	"strings"
)

// emojiNames are names of emoji that each workspace has. Slack has some 1,900; a test that needs another adds it here.
const emojiNames = `
+1 thumbsup -1 thumbsdown heart joy tada eyes white_check_mark heavy_check_mark ballot_box_with_check x negative_squared_cross_mark no_entry_sign
no_entry fire pray clap raised_hands 100 rocket thinking_face smile grinning smiley grin slightly_smiling_face wink blush heart_eyes sunglasses
sweat_smile laughing satisfied rolling_on_the_floor_laughing sob cry open_mouth scream rage neutral_face sleeping shrug face_palm ok_hand wave hand
raised_hand muscle handshake v crossed_fingers point_up point_up_2 point_down point_right point_left star star2 sparkles zap bulb warning exclamation
heavy_exclamation_mark question heavy_plus_sign heavy_minus_sign bug pushpin paperclip memo pencil pencil2 lock unlock wrench hourglass_flowing_sand
hourglass alarm_clock coffee tea pizza beer birthday trophy broken_heart orange_heart yellow_heart green_heart blue_heart purple_heart black_heart
robot_face hankey poop ghost skull exploding_head partying_face saluting_face large_green_circle large_yellow_circle red_circle large_blue_circle one
two three four five six seven eight nine zero keycap_ten mag calendar email phone computer gift balloon sunny cloud umbrella snowflake dog cat mouse
parrot rainbow ok cool new up soon white_circle black_circle arrow_up arrow_down arrow_left arrow_right repeat recycle
`

// knownEmoji reports whether a reaction may have a name: of an emoji, with a skin tone or without.
func knownEmoji(name string) bool {
	base, _, _ := strings.Cut(name, "::skin-tone-")
	return emojiForm.MatchString(name) && slices.Contains(strings.Fields(emojiNames), base)
}
