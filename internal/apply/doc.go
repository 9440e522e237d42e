// SPDX-License-Identifier: Apache-2.0

// Package apply executes plans on a cluster, as the tenant: stage by stage, with the waiting between CRDs and their
// resources and between phases. The packages below it are the other steps of a deployment's reconcile; each can be called
// by itself, is bounded by its context, and none waits for health:
//
//	pool, err := tenant.NewPool(config, tenant.Options{})                 // once a process
//	client, err := pool.Client(tenant.Identity{Namespace, ServiceAccount}) // never without an identity
//
//	input, err := observe.Cluster(ctx, client, observe.Request{Owner, Desired, Previous, InstallNamespace, ...})
//	p := plan.Make(input)                                          // pure; p.Violations: nothing is touched
//	permissions, err := preflight.Check(ctx, client, p)            // 0 requests when nothing is written
//	check, err := dryrun.Run(ctx, client, p, dryrun.Options{})     // check.Failed: nothing is touched
//	... p.Inventory is stored ...
//	result, err := Apply(ctx, client, p, Options{})                // result.Inventory is stored
//	report, err := health.Check(ctx, client, objects, result.Live)
//	pruned, err := removal.Prune(ctx, client, p.Owner, p.Prune, removal.Options{}) // after health; pruned.Gone leave the inventory
//
//	removed, err := removal.Remove(ctx, client, owner, inventory, removal.Options{}) // called again until removed.Done()
//
// The result for an object is a value (Outcome); an error means that it could
// not be determined and that a retry may help.
package apply
