// SPDX-License-Identifier: Apache-2.0

// Package clusters has the limits of work on other clusters, which spec.target names. The limits of the controller's own
// cluster are independent of them.
package clusters

import (
	"fmt"

	"github.com/spf13/pflag"
)

// Limits of the work on other clusters.
type Limits struct {
	// Kept is how many clusters stay connected, and their kinds known.
	Kept int
	// Concurrent is how many deployments to other clusters are reconciled at once, beside those to this one.
	Concurrent int
	// Watches is how many watches of the objects of one other cluster are open.
	Watches int
}

// Default returns the defaults of the flags.
func Default() Limits {
	return Limits{Kept: 1024, Concurrent: 64, Watches: 20}
}

// BindFlags adds the flags to a set.
func (l *Limits) BindFlags(fs *pflag.FlagSet) {
	*l = Default()
	fs.IntVar(&l.Kept, "remote-clusters", l.Kept,
		"How many other clusters stay connected, with what they serve: one for each namespace and kubeconfig. With more clusters than that, each reconcile connects and discovers again. As many clients of ServiceAccounts of this cluster are kept.")
	fs.IntVar(&l.Concurrent, "concurrent-remote", l.Concurrent,
		"How many deployments on other clusters are reconciled at once, at most half of them of one namespace; those of this cluster have --concurrent for themselves.")
	fs.IntVar(&l.Watches, "watches-per-cluster", l.Watches,
		"How many watches of the objects of one other cluster are open at once, within --watch-limit; its other objects are compared at the interval.")
}

// Validate returns the first flag with a value that cannot be used.
func (l *Limits) Validate() error {
	for _, flag := range []struct {
		name  string
		value int
	}{{"--remote-clusters", l.Kept}, {"--concurrent-remote", l.Concurrent}, {"--watches-per-cluster", l.Watches}} {
		if flag.value < 1 {
			return fmt.Errorf("%s is %d: it has to be at least 1", flag.name, flag.value)
		}
	}
	return nil
}
