// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/spec/leftout"
	"github.com/satchel-dev/satchel/internal/view"
)

// applied finds out which files the applied objects came from, if links were left out of what is previewed: the applied revision is
// converted for that. What the inventory lists and that revision does not contain is held by its links already.
func (p *Previewer) applied(ctx context.Context) leftout.Applied {
	revision := p.Deployment.Status.Applied.Revision
	if len(p.files.LeftOut) == 0 || revision == "" {
		return leftout.Applied{}
	}
	from := p
	if p.Out.Revision == "" || view.ContentOf(revision) != view.ContentOf(p.Out.Revision) {
		earlier := *p
		earlier.options = previewOptions{revision: revision}
		earlier.options.Limits = p.options.Limits
		earlier.declared, earlier.Out = nil, &Preview{}
		if _, err := earlier.convert(ctx); err != nil {
			p.note("revision %s cannot be read, so all objects that may come from skipped links are held: %v", view.ShortRevision(revision), err)
			return leftout.Applied{}
		}
		from = &earlier
	}
	was := leftout.Applied{Known: from.origins != nil, Origins: from.origins, LeftOut: from.files.LeftOut, Held: map[inventory.ID][]string{}}
	for _, entry := range p.previous.Entries {
		if _, contained := was.Origins[entry.ID]; was.Known && !contained {
			was.Held[entry.ID] = was.LeftOut
		}
	}
	return was
}
