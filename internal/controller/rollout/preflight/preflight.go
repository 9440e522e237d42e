// SPDX-License-Identifier: Apache-2.0

// Package preflight has the API server check the BundleDeployments of a revision before the first of them is started: what it would refuse
// on the last cluster stops the revision before the first one.
package preflight

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/satchel-dev/satchel/internal/controller/rollout/children"
	"github.com/satchel-dev/satchel/internal/controller/rollout/rendered"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// RefusedError says that the API server refuses the BundleDeployment of a cluster.
type RefusedError struct {
	Cluster string
	err     error
}

// Error implements error.
func (r *RefusedError) Error() string {
	return fmt.Sprintf("the API server refuses the bundledeployment of cluster %s: %v", r.Cluster, r.err)
}

// Unwrap returns the cause.
func (r *RefusedError) Unwrap() error { return r.err }

// Result is how a revision was checked.
type Result struct {
	Revision string
	At       time.Time
	// Refused is nil if all is well.
	Refused *RefusedError
}

// atOnce is how many BundleDeployments are checked at once.
const atOnce = 16

// Check sends one BundleDeployment of each shape to the API server, in a dry run: of clusters that the same overrides select, and that are
// reached in the same way, the first by name. Clusters for which nothing can be rendered, or of which the BundleDeployment belongs to
// another client, are reported elsewhere. RefusedError: one is refused.
func Check(ctx context.Context, writer children.Writer, of *rendered.Revision, clusters map[string]revision.Cluster) error {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, cluster := range oneOfEachShape(of, clusters) {
		group.Go(func() error { return checkOne(ctx, writer, of, cluster) })
	}
	return group.Wait()
}

// oneOfEachShape are the first clusters by name of which the specs differ in more than variables.
func oneOfEachShape(of *rendered.Revision, clusters map[string]revision.Cluster) []*revision.Cluster {
	var chosen []*revision.Cluster
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		cluster := clusters[name]
		if shape := of.Shape(&cluster); !seen[shape] {
			seen[shape] = true
			chosen = append(chosen, &cluster)
		}
	}
	return chosen
}

func checkOne(ctx context.Context, writer children.Writer, of *rendered.Revision, cluster *revision.Cluster) error {
	child, _, err := of.Render(cluster, anyContent)
	if err != nil {
		return nil //nolint:nilerr // the cluster is reported as invalid, and is not started
	}
	err = writer.Check(ctx, cluster.Name, child)
	switch {
	case err == nil, errors.Is(err, children.ErrForeign), cannotBeChecked(err):
		return nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err):
		return &RefusedError{Cluster: cluster.Name, err: err}
	}
	return fmt.Errorf("checking the bundledeployment of cluster %s: %w", cluster.Name, err)
}

// anyContent stands for the inputs that only one cluster has: their content does not count here.
func anyContent(wanted []revision.FrozenInput) ([]string, error) {
	digests := make([]string, len(wanted))
	for i := range digests {
		digests[i] = "unknown"
	}
	return digests, nil
}

// cannotBeChecked tells that the API server permits no dry run, because of an admission webhook with side effects.
func cannotBeChecked(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}
