// SPDX-License-Identifier: Apache-2.0

package kit

// Groups of commands in the help.
const (
	GroupSee     = "see"
	GroupPreview = "preview"
	GroupAuthor  = "author"
	GroupAct     = "act"
	GroupOperate = "operate"
)
