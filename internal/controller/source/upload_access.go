// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact/server"
	"github.com/satchel-dev/satchel/internal/artifact/upload"
	"github.com/satchel-dev/satchel/internal/controller/source/tokenreview"
)

const (
	// uploadsPerNamespace is how many uploads of a namespace are received at once,
	// mostUploads how many in all: each uses a worker's share of disk and CPU.
	uploadsPerNamespace = 2
	mostUploads         = 8
)

// addUploads adds the server for uploads to a manager, unless it is off.
func (o Options) addUploads(mgr ctrl.Manager, r *Reconciler) error {
	if o.UploadAddr == "" {
		return nil
	}
	u := &uploads{Reconciler: r, tokens: tokenreview.New(mgr.GetClient(), upload.Audience, nil)}
	s := &leaderServer{what: "receiving uploads", flag: "--upload-addr", standby: notLeading, elected: mgr.Elected()}
	s.http = upload.Server(o.UploadAddr, upload.Options{
		Identify: u.identify, Accept: u.accept, Present: u.present, Store: u.take, Observe: r.Measures.upload, Tell: u.tell,
		PerNamespace: uploadsPerNamespace, Most: mostUploads,
	})
	s.http.Handler = s.onlyLeading(s.http.Handler)
	return errors.Join(mgr.AddReadyzCheck("uploads", s.ready), mgr.Add(s))
}

// notLeading answers uploads to a standby process.
func notLeading(w http.ResponseWriter, _ *http.Request) {
	upload.Answer(w, &upload.Error{Reason: upload.Standby, Message: "another process of the source controller is the leader: upload to that one", RetryAfter: time.Second})
}

// identify returns the user of a token.
func (u *uploads) identify(ctx context.Context, token string) (string, error) {
	user, err := u.tokens.User(ctx, token)
	if errors.Is(err, server.ErrUnauthenticated) {
		return "", upload.Errorf(upload.Unauthenticated, "the token is not valid here: it has to be of a ServiceAccount, with the audience %s, and not expired", upload.Audience)
	}
	return user, err
}

// accept tells whether a user may upload this. ServiceAccounts upload for BundleSources
// of their own namespace only, since Satchel's references never cross namespaces.
func (u *uploads) accept(ctx context.Context, user string, t upload.Target) error {
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
	if err := u.Client.Create(ctx, review); err != nil {
		return fmt.Errorf("asking whether %s may upload for %s: %w", user, t, err)
	}
	if !review.Status.Allowed {
		return upload.Errorf(upload.Forbidden, "the ServiceAccount %s/%s may not upload for %s: grant it the verb create on bundlesources/upload (group %s)",
			namespace, name, t, v1alpha1.GroupVersion.Group)
	}
	_, err := u.sourceOf(ctx, t)
	return err
}
