/** Preloaded into the command line: a tracer, as an SDK would set it up. */
import { trace } from '@opentelemetry/api'
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base'

trace.setGlobalTracerProvider(new BasicTracerProvider())
