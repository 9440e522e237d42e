// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"fmt"

	"github.com/satchel-dev/satchel/internal/cli/bundle"
)

// declare reads the manifest of -f, and completes the options with it.
func (r *run) declare(ctx context.Context) (err error) {
	o := &r.options
	defer func() {
		o.namespace = r.Namespace
		o.installNamespace = cmp.Or(o.installNamespace, r.Namespace)
	}()
	if len(o.manifests) == 0 {
		return nil
	}
	if r.declared, err = bundle.ReadDeclared(ctx, r.App, o.manifests, "", r.Namespace); err != nil {
		return err
	}
	d := r.declared.Deployment
	o.name, r.Namespace = d.Name, d.Namespace
	o.installNamespace = cmp.Or(o.installNamespace, d.Spec.Target.Namespace)
	if o.what != "" {
		return nil
	}
	if r.declaredSource, err = r.declared.Set.Source(ctx, d); err == nil && r.declaredSource == nil {
		err = fmt.Errorf("BundleDeployment %s refers to %s %s, which is not in %s: add its manifest, or give a folder or an image in its place",
			d.Name, d.Spec.SourceRef.Kind, d.Spec.SourceRef.Name, r.declared.Set.From())
	}
	return err
}
