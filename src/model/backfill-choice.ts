/** Which windows of a span a backfill fills: those without a run, those whose run failed, or both. */
export const BACKFILL_CHOICES = ['missing', 'failed', 'all'] as const
export type BackfillChoice = (typeof BACKFILL_CHOICES)[number]
