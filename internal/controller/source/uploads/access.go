// SPDX-License-Identifier: Apache-2.0

package uploads

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact/server"
	"github.com/satchel-dev/satchel/internal/artifact/upload"
	"github.com/satchel-dev/satchel/internal/controller/source/tokenreview"
)

// identify returns the user of a token.
func (r *Receiver) identify(ctx context.Context, token string) (string, error) {
	user, err := r.Tokens.User(ctx, token)
	if errors.Is(err, server.ErrUnauthenticated) {
		return "", upload.Errorf(upload.Unauthenticated, "the token is not valid here: it has to be of a ServiceAccount, with the audience %s, and not expired", upload.Audience)
	}
	return user, err
}

// accept tells whether a user may upload this. ServiceAccounts upload for BundleSources
// of their own namespace only, since Satchel's references never cross namespaces.
func (r *Receiver) accept(ctx context.Context, user string, t upload.Target) error {
	namespace, name, isAccount := strings.Cut(strings.TrimPrefix(user, tokenreview.AccountPrefix), ":")
	if !isAccount || !strings.HasPrefix(user, tokenreview.AccountPrefix) || namespace != t.Namespace {
		return upload.Errorf(upload.Forbidden, "the token is of %s: it has to be of a ServiceAccount of the namespace %s", user, t.Namespace)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   user,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "create", Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version,
			Resource: "bundlesources", Subresource: "upload", Namespace: t.Namespace, Name: t.Name,
		},
	}}
	if err := r.Client.Create(ctx, review); err != nil {
		return fmt.Errorf("asking whether %s may upload for %s: %w", user, t, err)
	}
	if !review.Status.Allowed {
		return upload.Errorf(upload.Forbidden, "the ServiceAccount %s/%s may not upload for %s: grant it the verb create on bundlesources/upload (group %s)",
			namespace, name, t, v1alpha1.GroupVersion.Group)
	}
	_, err := r.sourceOf(ctx, t)
	return err
}
