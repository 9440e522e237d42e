// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"fmt"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/install"
	"github.com/satchel-dev/satchel/internal/view"
)

// letRolloutsGo deletes the BundleRollouts, and stops their controller first: it would create BundleDeployments again while these are
// deleted, and with deletionPolicy: Delete it would wait for clusters one after the other. What happens to the BundleDeployments is
// what the flags say, for all of them.
func (u *uninstaller) letRolloutsGo(ctx context.Context) error {
	if len(u.rollouts) == 0 {
		return nil
	}
	isController := func(p *piece) bool { return p.id.Kind == "Deployment" && p.id.Name == install.RolloutController }
	if err := u.removePieces(ctx, isController); err != nil {
		return err
	}
	for _, o := range u.rollouts {
		if by := kit.Deliverer(o); by != "" {
			fmt.Fprintf(u.app.Streams.ErrOut, "Warning: %s %s/%s comes from %s, which will create it again: remove its manifest there.\n",
				kit.Rollouts.Name, o.GetNamespace(), o.GetName(), view.Inline(by))
		}
		if err := u.releaseOne(ctx, kit.Rollouts, o); err != nil {
			return err
		}
	}
	fmt.Fprintf(u.app.Streams.Out, "%s deleted\n", view.Plural(len(u.rollouts), kit.Rollouts.Name))
	return nil
}
