// Soft navigations that are refused: what a person then sees, whoever fetched. Each
// person has an address of their own, and room for one page and two fetches.
import { join } from 'node:path'
import { handled, open, quiet, run, step } from './browser.mjs'

const { context, page, close } = await open()
const heading = (text) => page.waitForFunction((t) => document.querySelector('h1')?.textContent === t, text)

try {
  for (const [n, { name, start, click }] of run.params.entries()) {
    await context.setExtraHTTPHeaders({ 'X-Forwarded-For': `192.0.2.${n + 1}` })
    await page.goto(run.site + start)
    for (const i of [1, 2]) {
      if (start.startsWith('/htmx')) await handled(page, `#soft-${i}`)
      await page.click(`#soft-${i}`)
      await heading(`View ${i}`)
    }
    await step(context, `${name}: two fetches`, () => {})
    await step(context, name, async () => {
      const refused = page.waitForResponse((r) => r.status() === 429)
      if (start.startsWith('/htmx')) await handled(page, click)
      await page.click(click)
      await refused
      await quiet(context, 1500) // a loop would go on
      await page.screenshot({ path: join(run.shots, `refused-${name.replaceAll(/\W+/g, '-')}.png`) })
      return page.evaluate(() => ({
        title: document.title,
        path: location.pathname,
        first: document.querySelector('h1')?.textContent,
        text: document.querySelector('[role=timer]')?.textContent,
      }))
    })
  }
} finally {
  await close()
}
