// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// readNamespaces finds out whether the namespaces of the desired objects exist.
// A namespace in which an object of ours was seen is not requested.
func readNamespaces(ctx context.Context, client *tenant.Client, in *plan.Input, limit int) error {
	seen := map[string]bool{"": true}
	for id := range in.Live {
		seen[id.Namespace] = true
	}
	ask := map[string]bool{}
	for _, object := range in.Desired {
		if !seen[object.Namespace] {
			ask[object.Namespace] = true
		}
	}
	names := slices.Sorted(maps.Keys(ask))
	type answer struct {
		presence plan.Presence
		err      error
	}
	answers := parallel.Each(ctx, limit, names, func(ctx context.Context, name string) answer {
		presence, err := presenceOf(ctx, client, name)
		return answer{presence, err}
	})
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("observing the namespaces: %w", err)
	}
	var errs []error
	for i, name := range names {
		in.Namespaces[name] = answers[i].presence
		errs = append(errs, answers[i].err)
	}
	if in.Keeping {
		return nil // the writes will show it
	}
	return objecterror.Join(errs)
}

func presenceOf(ctx context.Context, client *tenant.Client, name string) (plan.Presence, error) {
	found, err := client.Namespace(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return plan.Absent, nil
	case apierrors.IsForbidden(err):
		return plan.Unknown, nil
	case err != nil:
		return plan.Unknown, fmt.Errorf("observing namespace %q: %w", name, err)
	case found.DeletionTimestamp != nil:
		return plan.Terminating, nil
	}
	return plan.Present, nil
}
