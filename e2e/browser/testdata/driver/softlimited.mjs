// A limited person in a Next.js site: the router's fetch is refused, and the
// browser asks for the page itself, once.
import { join } from 'node:path'
import { handled, open, run, step } from './browser.mjs'

const { context, page, close } = await open()
const at = (path) => run.site + path

try {
  await step(context, 'listing', () => page.goto(at('/')))
  await step(context, 'first soft click', async () => {
    await handled(page, '#cold-0')
    await page.click('#cold-0')
    await page.waitForFunction(() => document.querySelector('h1')?.textContent === 'Plain 0')
  })
  await step(context, 'second soft click', async () => {
    await handled(page, '#back')
    await page.click('#back')
    await page.waitForFunction(() => document.title.startsWith('Too many pages'))
    await page.screenshot({ path: join(run.shots, 'limited-after-a-soft-click.png') })
    await page.waitForTimeout(1500) // a loop would go on
    return { title: await page.title() }
  })
} finally {
  await close()
}
