// SPDX-License-Identifier: Apache-2.0

package helm

import "strings"

// longestName bounds names in messages.
const longestName = 200

// shorten keeps a text from spoiling a message.
func shorten(text string) string {
	if len(text) > longestName {
		text = strings.ToValidUTF8(text[:longestName], "") + "…"
	}
	return text
}
