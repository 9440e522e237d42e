// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/tenant/discovery"
)

// Gone confirms that a kind that discovery does not list is gone, before its objects are
// forgotten: neither the discovery documents of its group nor its resource may be served, now and
// in a check a few seconds before. It is nil when the kind is gone, an *UnconfirmedError until
// that is known, and another error when the API server cannot tell. The reference names an object
// of the kind; its resource is looked up where it has only a version.
func (c *Client) Gone(ctx context.Context, kind schema.GroupKind, of Ref) error {
	k := c.Kinds()
	served, err := c.shows(ctx, kind, of)
	switch {
	case err != nil:
		return err
	case served:
		k.Present(kind)
		return &discovery.UnconfirmedError{Kind: kind}
	case !k.ConfirmMissing(kind):
		return &discovery.UnconfirmedError{Kind: kind}
	}
	return nil
}

// shows tells whether the API server still serves a kind: by the discovery documents of its group, or
// its resource. Kinds without a group are part of every API server.
func (c *Client) shows(ctx context.Context, kind schema.GroupKind, of Ref) (bool, error) {
	if kind.Group == "" {
		return false, nil
	}
	if served, err := c.Kinds().Served(ctx, kind); err != nil || served {
		return served, err
	}
	if of.Resource.Resource == "" {
		of.Resource = c.Kinds().LastResource(kind, of.Resource.Version)
	}
	if of.Resource.Version == "" {
		return false, nil
	}
	return c.answers(ctx, of)
}

// answers tells whether the API server has an object, or answers that no object has that name.
// When the tenant may not read it, discovery decides.
func (c *Client) answers(ctx context.Context, of Ref) (bool, error) {
	_, err := c.Metadata(ctx, of)
	switch {
	case objecterror.NotServed(err), apierrors.IsForbidden(err):
		return false, nil
	case err == nil, apierrors.IsNotFound(err):
		return true, nil
	}
	return false, err
}
