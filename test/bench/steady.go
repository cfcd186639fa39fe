package main

import "context"

func measureSteady(ctx context.Context, s settings, p plane, t *table) error { return nil }
